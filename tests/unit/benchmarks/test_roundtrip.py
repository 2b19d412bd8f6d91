from pathlib import Path

import pikepdf
import pytest

from roundtrips.corpus import Document, _parts, clean
from roundtrips.files import strip
from roundtrips.markdown import STRIKE, SUB, Block, Run, parse, write
from roundtrips.producers import LATIN, Style, ceiling, printed, shown
from roundtrips.scores import compare, elements, words

RICH = """# Guide

Text with **bold**, *slanted*, ~~struck~~, `code`, H<sub>2</sub>O and [a link](https://example.org/a).

## Parts

- one
  - two

    more of two
- three

1. first

```
if x:
    y | z
```

| a | b |
|---|---|
| c\\|d | **e** |

> quoted
"""


def scores(truth: str, other: str) -> dict[str, float]:
    return compare(elements(truth), elements(other)).scores


def test_written_blocks_parse_to_themselves() -> None:
    blocks = parse(RICH)
    assert parse(write(blocks)) == blocks
    odd = [Block("paragraph", [Run("1. a*b_c [x] <y> &amp; "), Run("in", frozenset({STRIKE})), Run("side")])]
    assert parse(write(odd)) == odd


def test_a_text_has_all_of_itself() -> None:
    assert set(scores(RICH, write(parse(RICH))).values()) == {1.0}


def test_each_kind_is_missed() -> None:
    plain = "Guide\n\nText with bold, slanted, struck, code, H2O and a link.\n"
    missing = scores(RICH, plain)
    assert missing.pop("words") > 0.5
    assert set(missing.values()) == {0.0}


def test_scripts_are_equal_as_unicode_and_as_tags_and_differ_from_plain_digits() -> None:
    assert scores("10<sup>5</sup> m", "10⁵ m") == {"words": 1.0, "scripts": 1.0}
    assert scores("10<sup>5</sup> m", "105 m") == {"words": 0.5, "scripts": 0.0}


@pytest.mark.parametrize(
    ("target", "found"),
    [("https://example.org/a", 1.0), ("https://example.org/b", 0.0), ("https://example.org/a/", 0.0)],
)
def test_targets_of_links_match_exactly(target: str, found: float) -> None:
    assert scores("[here](https://example.org/a)", f"[here]({target})")["links"] == found


def test_level_order_counts_pairs() -> None:
    truth = "# Alpha\n\n## Bravo\n\n## Charlie\n"
    assert scores(truth, "## Alpha\n\n### Bravo\n\n### Charlie\n")["levels"] == 1.0
    assert scores(truth, "# Alpha\n\n# Bravo\n\n# Charlie\n")["levels"] == pytest.approx(1 / 3)


def test_depth_counts_items_at_their_depth() -> None:
    found = scores("- one\n  - two\n", "- one\n- two\n")
    assert (found["items"], found["depth"]) == (1.0, 0.5)


def test_each_text_is_used_once() -> None:
    assert scores("# Same\n\n# Same\n", "# Same\n")["headings"] == pytest.approx(2 / 3)


def test_cells_of_html_tables_count() -> None:
    table = "<table><tr><th>a</th><th>b</th></tr><tr><td>c</td><td>10<sup>5</sup></td></tr></table>\n"
    assert scores("| a | b |\n|---|---|\n| c | 10<sup>5</sup> |\n", table)["cells"] == 1.0


def test_words_are_those_of_their_language() -> None:
    assert words("“Ein- und Ausgang”, (ja).") == ["Ein", "und", "Ausgang", "ja"]
    assert words("目次の例 10") == ["目", "次", "の", "例", "10"]


def test_cleaning_keeps_what_a_page_shows() -> None:
    source = (
        "# One 🚀\n\n![badge](x.png) <b>T</b>ext [web](https://e.org) [file](docs/x.md) [up](#one-)\n\n"
        "<div>raw</div>\n\n`only code`\n"
    )
    blocks = clean(parse(source))
    assert [block.kind for block in blocks] == ["heading", "paragraph", "code"]
    assert [run.href for run in blocks[1].runs if run.href] == ["https://e.org", "#one"]
    assert blocks[2].text == "only code"


def test_long_documents_are_cut_and_continue_at_a_heading() -> None:
    section = "## Part\n\n### Detail\n\n" + "word " * 800 + "\n\n"
    parts = list(_parts(section * 6))
    assert len(parts) == 2
    assert all(part[0].kind == "heading" and part[-1].kind == "paragraph" for part in parts)


def test_a_style_lacks_characters_and_marks() -> None:
    style = Style(lambda _: None, LATIN, "latin-1", frozenset({SUB, "link"}), levels=1, columns=8)
    document = Document("d", "en", tuple(parse(RICH.replace("bold", "bold→"))))
    blocks = shown(document, style)
    assert blocks is not None
    assert "→" not in write(blocks)
    assert all(len(line) <= 8 for block in blocks if block.kind == "code" for line in block.text.split("\n"))
    best = scores(write(blocks), write(ceiling(blocks, style)))
    lost = {measure for measure, score in best.items() if score < 1}
    assert lost == {"links", "scripts", "levels", "words"}
    assert shown(Document("d", "ko", ()), style) is None


def test_manual_pages_print_the_targets_of_links() -> None:
    style = Style(lambda jobs: None, targets=True)
    blocks = printed(parse("See [*a* link](https://example.org/a), [b](b.md), <https://example.org/b>."), style)
    text = "See *a* link (https://example.org/a), b, https://example.org/b."
    assert elements(write(blocks)).words == elements(text).words


def test_stripping_removes_what_the_producer_says_about_structure(tmp_path: Path) -> None:
    source, target = tmp_path / "tagged.pdf", tmp_path / "stripped.pdf"
    with pikepdf.new() as pdf:
        page = pdf.add_blank_page()
        page.obj.StructParents = 0
        page.Contents = pdf.make_stream(b"/H1 <</MCID 0>> BDC BT (text) Tj ET EMC /Artifact BMC 0 0 5 5 re f EMC")
        pdf.Root.StructTreeRoot = pdf.make_indirect(pikepdf.Dictionary(Type=pikepdf.Name.StructTreeRoot))
        pdf.Root.MarkInfo = pikepdf.Dictionary(Marked=True)
        pdf.save(source)
    strip(source, target)
    with pikepdf.open(target) as pdf:
        assert "/StructTreeRoot" not in pdf.Root
        assert "/StructParents" not in pdf.pages[0]
        operators = [str(one.operator) for one in pikepdf.parse_content_stream(pdf.pages[0])]
    assert operators == ["BT", "Tj", "ET", "re", "f"]
