"""The Korean notice: a public-document-like page of a town that does not exist, in our own words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reportlab.lib.colors import HexColor
from reportlab.lib.enums import TA_CENTER, TA_LEFT
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle

from makers.typesetting import (
    Block,
    Cell,
    Column,
    Element,
    Typesetter,
    build_table,
    new_canvas,
    register_fonts,
    table_html,
)

if TYPE_CHECKING:
    from pathlib import Path

SERIF, SANS, BOLD = "NanumMyeongjo", "NanumGothic", "NanumGothicBold"

BODY = ParagraphStyle("body", fontName=SERIF, fontSize=11, leading=18, alignment=TA_LEFT)
LIST = ParagraphStyle("list", parent=BODY, leftIndent=12)
TITLE = ParagraphStyle("title", fontName=BOLD, fontSize=19, leading=27, alignment=TA_CENTER)
HEADING = ParagraphStyle("heading", fontName=BOLD, fontSize=13, leading=20)
CAPTION = ParagraphStyle("caption", fontName=SANS, fontSize=10, leading=14, alignment=TA_CENTER)
CLOSING = ParagraphStyle("closing", fontName=BOLD, fontSize=14, leading=22, alignment=TA_CENTER)

LEFT, WIDTH = 68.0, 459.0

TITLE_TEXT = "2026년 전통 한지 제작 체험 교실 참가자 모집 공고"
INTRODUCTION = (
    "물레시는 사라져 가는 전통 종이 제작 기술을 시민에게 널리 알리고 지역 공방의 활동을 돕기 위하여 "
    "다음과 같이 체험 교실을 운영합니다. 종이에 관심이 있는 시민 여러분의 많은 참여를 바랍니다."
)
OUTLINE = (
    "가. 교육 기간: 2026년 4월 6일(월)부터 6월 26일(금)까지 12주",
    "나. 교육 장소: 물레시 한지 박물관 2층 실습실",
    "다. 신청 자격: 공고일 현재 물레시에 주소를 둔 만 18세 이상 시민",
    "라. 신청 방법: 박물관 누리집 또는 방문 접수",
)
COURSES = (
    "모든 강좌는 닥나무 껍질을 삶고 두드리는 과정부터 종이를 뜨고 말리는 과정까지 직접 해 보는 실습 위주로 진행합니다. "
    "강좌별 요일과 정원은 아래 표와 같으며, 신청자가 정원의 절반에 미치지 못하는 강좌는 열지 않을 수 있습니다."
)
TABLE_CAPTION = "<표 1> 강좌별 운영 계획"
TABLE = [
    [Cell("구분", rowspan=2), Cell("강좌 이름", rowspan=2), Cell("운영 시간", colspan=2), Cell("정원", rowspan=2),
     Cell("수강료", rowspan=2)],
    [Cell("요일"), Cell("시간")],
    [Cell("기초 과정", rowspan=2), *map(Cell, ("한지 뜨기 입문", "월요일", "10:00~12:00", "20명", "30,000원"))],
    [*map(Cell, ("천연 염색 종이", "수요일", "14:00~16:00", "15명", "45,000원"))],
    [Cell("심화 과정", rowspan=2), *map(Cell, ("전통 책 만들기", "목요일", "19:00~21:00", "12명", "60,000원"))],
    [*map(Cell, ("문화재 보수지 연구", "금요일", "13:00~17:00", "8명", "90,000원"))],
]  # fmt: skip
RULES = (
    "신청서는 3월 9일 오전 9시부터 3월 20일 오후 6시까지 접수하며, 신청자가 정원을 넘으면 공개 추첨으로 참가자를 "
    "정합니다. 추첨 결과는 3월 24일 박물관 누리집에 올리고 당첨자에게 문자로 알려 드립니다.",
    "수강료는 교육 시작 전까지 내야 하며, 재료비는 수강료에 포함되어 있습니다. 자세한 내용은 문화유산과 한지진흥팀"
    "(전화 055-120-3417)으로 문의하시기 바랍니다.",
)


def make(path: Path) -> list[list[Element]]:
    """Write the notice; returns the truth of its one page."""
    register_fonts([SERIF, SANS, BOLD])
    canvas = new_canvas(path, A4, TITLE_TEXT, "물레시")
    setter = Typesetter(canvas)
    setter.start_page()
    setter.line("header", "물레시 공보 제418호", LEFT, 796, SANS, 9)
    canvas.setLineWidth(0.5)
    canvas.line(LEFT, 789, LEFT + WIDTH, 789)

    def heading(words: str) -> Block:
        return Block("paragraph_title", words, HEADING, space_after=4, facts={"level": 2})

    def text(words: str, after: float = 0.0) -> Block:
        return Block("text", words, BODY, space_after=after)

    outline = [Block("text", words, LIST, facts={"list_item": True}, space_after=1) for words in OUTLINE]
    grid = [
        ("FONT", (0, 0), (-1, -1), SANS, 10), ("FONT", (0, 0), (-1, 1), BOLD, 10),
        ("GRID", (0, 0), (-1, -1), 0.6, HexColor("#000000")),
        ("BACKGROUND", (0, 0), (-1, 1), HexColor("#e8ecef")),
        ("ALIGN", (0, 0), (-1, -1), "CENTER"), ("VALIGN", (0, 0), (-1, -1), "MIDDLE"),
    ]  # fmt: skip
    table = build_table(TABLE, [66, 118, 62, 88, 52, 70], grid, 22)
    blocks = [
        Block("text", "물레시 공고 제2026-173호", BODY, space_after=16),
        Block("doc_title", TITLE_TEXT, TITLE, space_after=14, facts={"level": 1}),
        text(INTRODUCTION, 14),
        heading("1. 모집 개요"),
        *outline[:-1],
        Block("text", OUTLINE[-1], LIST, facts={"list_item": True}, space_after=14),
        heading("2. 강좌 안내"),
        text(COURSES, 10),
        Block("figure_title", TABLE_CAPTION, CAPTION, space_after=4, facts={"caption_of": "table"}),
        Block("table", table=table, space_after=16, facts={"html": table_html(TABLE), "bordered": True}),
        heading("3. 접수와 선정"),
        text(RULES[0], 4),
        text(RULES[1], 18),
        Block("text", "2026년 3월 2일", ParagraphStyle("date", parent=BODY, alignment=TA_CENTER), space_after=10),
        Block("text", "물 레 시 장", CLOSING),
    ]
    if setter.fill(Column(LEFT, 60, WIDTH, 772), blocks):
        raise ValueError("the notice does not fit on one page")
    setter.line("number", "- 1 -", A4[0] / 2, 36, SANS, 9, "centre")
    canvas.save()
    return setter.pages
