"""Filled-in forms from the PDF to the Markdown, with real engines: every value that a viewer shows is there, once."""

from pathlib import Path

import pytest
from form_pdfs import HIDDEN, MULTI_LINE, FormPage
from parse_command import parse, records

from pagemill.errors import ExitCode

pytestmark = pytest.mark.integration

PROSE = (
    "This agreement is made between the owner of the paper mill and the person named below. The owner lets",
    "the mill, with its wheel, its vats and its presses, for the term of one year from the date of signature.",
    "The tenant pays the rent in advance on the first day of each quarter and keeps the buildings in repair.",
)
ROWS = (
    "Name of the tenant: Ada Example",
    "Date: 22 November 2026",
    "Purpose: Handmade paper for the repair of books, and the teaching of apprentices in summer",
    "Country: Korea",
    "Korean name: 홍길동",
    "☒ I have read the house rules",
    "☐ I keep a dog",
    "☒ Quarterly",
    "☐ Yearly",
)
BESIDE = ("Green", "Approved by the clerk in March", "PAID IN FULL")


def contract(*, appearance: bool, need: bool, rotate: int, xfa: bool) -> bytes:
    page = FormPage(need_appearances=need, rotate=rotate, xfa=xfa)
    page.text(60, 740, "Rental contract", 18)
    for i, text in enumerate(PROSE):
        page.text(60, 700 - 14 * i, text)
    page.text(60, 630, "Name of the tenant:")
    page.text_field("name", (180, 622, 400, 642), "Ada Example", appearance=appearance)
    page.text(60, 600, "Date:")
    page.text_field("date", (180, 592, 320, 612), "22 November 2026", appearance=appearance)
    page.text(60, 572, "Purpose:")
    purpose = ROWS[2].removeprefix("Purpose: ")
    page.text_field("purpose", (180, 540, 500, 582), purpose, appearance=False, kind=MULTI_LINE)
    page.text_field("secret", (180, 510, 400, 530), "never shown", appearance=appearance, flags=HIDDEN)
    for i, (label, on) in enumerate((("I have read the house rules", True), ("I keep a dog", False))):
        page.check_box(f"box{i}", (60, 480 - 20 * i, 72, 492 - 20 * i), on=on, appearance=appearance)
        page.text(78, 482 - 20 * i, label)
    for x, label, on in ((60, "Quarterly", True), (200, "Yearly", False)):
        page.check_box(label, (x, 440, x + 12, 452), on=on, radio=True, appearance=appearance)
        page.text(x + 18, 442, label)
    page.text(60, 410, "Country:")
    page.choice("land", (180, 402, 300, 422), ["Denmark", "Korea"], "Korea", combo=True, appearance=appearance)
    page.text(60, 376, "Colours:")
    page.choice("colour", (180, 340, 300, 392), ["Red", "Green"], "Green", combo=False, appearance=appearance)
    page.text(60, 310, "Korean name:")
    page.text_field("korean", (180, 302, 400, 322), "<FEFFD64DAE38B3D9>", appearance=False)
    page.free_text((60, 260, 300, 280), "Approved by the clerk in March", appearance=appearance)
    stamp = (320, 230, 520, 280)
    page.annotate("Stamp", stamp, page.shown("PAID IN FULL", stamp, 24))
    return page.pdf()


FORMS = {
    "appearances": {"appearance": True, "need": False, "rotate": 0, "xfa": False},
    "needed": {"appearance": False, "need": True, "rotate": 0, "xfa": False},
    "missing": {"appearance": False, "need": False, "rotate": 0, "xfa": False},
    "turned": {"appearance": True, "need": False, "rotate": 180, "xfa": False},
    "xfa": {"appearance": True, "need": False, "rotate": 0, "xfa": True},
}


@pytest.fixture(scope="module")
def parsed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict]:
    folder = tmp_path_factory.mktemp("forms")
    for name, options in FORMS.items():
        (folder / f"{name}.pdf").write_bytes(contract(**options))
    out = tmp_path_factory.mktemp("parsed") / "out"
    ended = parse(folder, "-o", out)
    assert ended.returncode == ExitCode.PAGES_FAILED, ended.stderr  # for XFA alone
    assert "5 done, 0 failed" in ended.stdout
    return {Path(record["source"]).stem: record for record in records(out)}


@pytest.mark.parametrize("name", FORMS)
def test_every_value_is_in_the_markdown_beside_its_label(parsed: dict[str, dict], name: str):
    markdown = " ".join(parsed[name]["markdown"].replace("- ", "").split())
    for row in (*ROWS, *BESIDE):
        assert row in markdown
    assert [markdown.count(row) for row in ROWS] == [1] * len(ROWS)
    assert "never shown" not in markdown
    assert parsed[name]["text_source"] == "text-layer"


def test_xfa_is_named_in_the_record(parsed: dict[str, dict]):
    assert [error["category"] for error in parsed["xfa"]["errors"]] == ["unsupported"]
    assert "XFA" in parsed["xfa"]["errors"][0]["message"]
    assert parsed["missing"].get("errors", []) == []


@pytest.mark.slow
def test_a_form_made_by_another_library(tmp_path: Path):
    canvas = pytest.importorskip("reportlab.pdfgen.canvas")
    path = tmp_path / "reportlab.pdf"
    sheet = canvas.Canvas(str(path), pagesize=(595, 842))
    for i, text in enumerate(PROSE):
        sheet.drawString(60, 700 - 14 * i, text)
    sheet.drawString(60, 600, "Name:")
    sheet.acroForm.textfield(name="name", value="Ada Example", x=120, y=592, width=200, height=22, fontSize=11)
    sheet.drawString(60, 560, "Land:")
    sheet.acroForm.choice(name="land", value="Korea", options=["Korea", "Peru"], x=120, y=552, width=100, height=22)
    for i, on in enumerate((True, False)):
        sheet.acroForm.checkbox(name=f"box{i}", checked=on, x=60, y=500 - 30 * i, size=14)
        sheet.drawString(80, 503 - 30 * i, f"Choice number {i + 1}")
    sheet.save()
    assert parse(path, "-o", tmp_path / "out").returncode == 0
    (record,) = records(tmp_path / "out")
    for row in ("Name: Ada Example", "Land: Korea", "☒ Choice number 1", "☐ Choice number 2"):
        assert row in record["markdown"]
