import base64
import hashlib
import json
import re
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagemill.document.labels import Label
from pagemill.document.page import ContentFormat, PageError, PageResult, Region, Status, TextLine
from pagemill.export import report
from pagemill.export.report import report_html
from pagemill.store.summary import RunSummary

WEBP = b"RIFF\0\0\0\0WEBPVP8 data"


class Blocks(HTMLParser):
    """Collects scripts and styles the way a browser delimits them."""

    def __init__(self, document: str) -> None:
        super().__init__()
        self.data: dict[str, str] = {}
        self.programs: list[str] = []
        self.styles: list[str] = []
        self.policy = ""
        self._open: tuple[str, dict[str, str | None]] | None = None
        self.feed(document)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in {"script", "style"}:
            self._open = (tag, dict(attrs))
        if tag == "meta" and dict(attrs).get("http-equiv") == "Content-Security-Policy":
            self.policy = dict(attrs)["content"] or ""

    def handle_endtag(self, tag: str) -> None:
        self._open = None

    def handle_data(self, data: str) -> None:
        if self._open is None:
            return
        tag, attributes = self._open
        if tag == "style":
            self.styles.append(data)
        elif "type" in attributes:
            self.data[attributes["id"] or ""] = data
        else:
            self.programs.append(data)


def page(index: int, content: str | None = "text", **fields: Any) -> PageResult:
    line = TextLine(text="line", box=(10.0, 20.0, 110.0, 40.0))
    region = Region(
        index=0, label=Label.TEXT, bbox_2d=(0, 0, 1000, 1000), bbox=(0, 0, 200, 400), content=content, lines=(line,)
    )
    return PageResult(
        page_id=f"doc_{index}",
        page_idx=index,
        doc_id="doc",
        source="doc.pdf",
        page_number=index + 1,
        width=200,
        height=400,
        regions=[region],
        **fields,
    )


def write(out: Path, pages: list[PageResult], image: bytes | None = WEBP) -> Blocks:
    summary = RunSummary(started=datetime.now(UTC))
    for each in pages:
        summary.add(each)
    text = "".join(report_html(iter(pages), lambda _: image, msgspec.to_builtins(summary)))
    (out / "report.html").write_text(text, encoding="utf-8")
    return Blocks(text)


def test_blocks_hold_the_pages(tmp_path: Path) -> None:
    failed = page(
        1, None, status=Status.FAILED, errors=[PageError(component="decode", category="corrupt", message="m")]
    )
    blocks = write(tmp_path, [page(0, "First words"), failed])
    first = json.loads(blocks.data["page-0"])
    assert first["regions"][0]["attempts"] == 1
    assert first["regions"][0]["content"] == "First words"
    assert first["regions"][0]["lines"] == [{"text": "line", "box": [10.0, 20.0, 110.0, 40.0]}]
    assert blocks.data["image-0"] == "data:image/webp;base64," + base64.b64encode(WEBP).decode()
    index = json.loads(blocks.data["index"])
    assert [entry["title"] for entry in index["pages"]] == ["First words", "corrupt"]
    assert [entry["failed"] for entry in index["pages"]] == [False, True]
    assert (index["missing_pages"], index["missing_images"]) == (0, 0)
    assert json.loads(blocks.data["summary"])["failed"] == 1
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_the_policy_allows_the_one_script_and_style_and_no_network(tmp_path: Path) -> None:
    blocks = write(tmp_path, [page(0)])

    def hashed(text: str) -> str:
        return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"

    (program,), (style,) = blocks.programs, blocks.styles
    assert f"script-src {hashed(program)} {hashed(report._file(report._FORMULAS))};" in blocks.policy
    assert f"style-src {hashed(style)};" in blocks.policy
    assert "default-src 'none'" in blocks.policy
    document = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert not re.search(r"""(src|href)\s*=\s*["']?(https?:|//)""", document)
    assert "innerHTML" not in program


def test_no_name_is_declared_by_two_modules() -> None:
    # They share one scope in the report, where a second declaration is a syntax error.
    names = re.findall(r"^(?:async )?(?:const|let|function|class) (\w+)", report._script(), re.MULTILINE)
    assert [name for name in names if names.count(name) > 1] == []


def test_the_library_for_formulas_is_in_reports_with_latex(tmp_path: Path) -> None:
    with_latex = page(0)
    with_latex.regions[0].content_format = ContentFormat.LATEX
    assert len(write(tmp_path, [with_latex]).programs) == 2
    assert len(write(tmp_path, [page(0)]).programs) == 1


@given(
    st.text(st.characters(exclude_categories=("Cs",))) | st.sampled_from(["</script>", "<!--<script>", "]]>", "\u2028"])
)
def test_no_text_leaves_its_block(text: str) -> None:
    block = report._block("page-0", {"content": text})
    assert block.count("<") == 2
    assert json.loads(Blocks(block).data["page-0"]) == {"content": text}


def test_pages_past_the_bound_are_left_out_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "MAX_PAGES", 3)
    blocks = write(tmp_path, [page(index) for index in range(5)])
    index = json.loads(blocks.data["index"])
    assert (len(index["pages"]), index["missing_pages"]) == (3, 2)
    assert "page-3" not in blocks.data


def test_images_past_the_bound_are_left_out_before_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "MAX_BYTES", 20_000)
    blocks = write(tmp_path, [page(index) for index in range(5)], WEBP.ljust(3000, b"\0"))
    index = json.loads(blocks.data["index"])
    assert index["missing_pages"] == 0
    assert index["missing_images"] == 2
    assert sum(map(len, (data for name, data in blocks.data.items() if name.startswith("image")))) < 0.8 * 20_000
