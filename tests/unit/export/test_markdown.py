import itertools

import pytest
import synthetic_run
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from synthetic_run import region

from pagemill.document.labels import Label
from pagemill.document.page import (
    ContentFormat,
    Description,
    Furniture,
    ImageCrop,
    PageError,
    Status,
)
from pagemill.export.document import Document
from pagemill.export.embedding_text import embedding_text
from pagemill.export.markdown import document_markdown, escape, page_markdown, table_markdown, with_markdown

TABLE = "<table><thead><tr><th>Rag</th><th>Paper</th></tr></thead><tbody><tr><td>1</td><td>2</td></tr></tbody></table>"
SPANS = '<table><tr><td colspan="2">wide</td></tr><tr><td>1</td><td>2</td></tr></table>'


def page(*regions, number=1, **more):
    return synthetic_run.page("d", number, regions, page_idx=number - 1, **more)


def test_each_kind_of_region():
    result = page(
        region(0, Label.HEADER, "Journal", furniture=Furniture.PROVEN),
        region(1, Label.DOC_TITLE, "A Mill", level=1),
        region(2, Label.PARAGRAPH_TITLE, "1 Water", level=2),
        region(3, Label.TEXT, "Prose.\n\nMore."),
        region(4, Label.TEXT, "• one\n  • deeper\n2. two\n(a) three", list_item=True),
        region(5, Label.TABLE, TABLE, content_format=ContentFormat.HTML),
        region(6, Label.TABLE, SPANS, content_format=ContentFormat.HTML),
        region(7, Label.DISPLAY_FORMULA, "E = mc2", content_format=ContentFormat.FORMULA_TEXT),
        region(8, Label.IMAGE, None),
        region(9, Label.FIGURE_TITLE, "Figure 2: Wheel", caption_of=8),
        region(10, Label.FOOTNOTE, "1 A note."),
        region(11, Label.TEXT, "Last."),
        region(12, Label.NUMBER, "7", furniture=Furniture.PROVEN),
        image_crops=[ImageCrop(path="crops/d_1_crop_8.jpg", bbox=(0, 0, 10, 10), label=Label.IMAGE, region=8)],
    )
    assert page_markdown(result).split("\n\n") == [
        "# A Mill",
        "## 1 Water",
        "Prose.",
        "More.",
        "- one\n     - deeper\n2. two\n- (a) three",
        "| Rag | Paper |\n| --- | --- |\n| 1 | 2 |",
        SPANS,
        "$$\nE = mc2\n$$",
        "![Figure 2](crops/d_1_crop_8.jpg)",
        "Figure 2: Wheel",
        "Last.",
        "1 A note.",
    ]


def test_the_words_of_a_picture_stand_where_its_crop_is_missing():
    figure = region(0, Label.IMAGE, "Gate *open*")
    crop = ImageCrop(path="crops/d_1_crop_0.jpg", bbox=(0, 0, 10, 10), label=Label.IMAGE, region=0)
    assert page_markdown(page(figure)) == escape("Gate *open*")
    assert page_markdown(page(figure, image_crops=[crop])) == "![image](crops/d_1_crop_0.jpg)"


def test_a_list_cut_apart_is_one_list():
    result = page(region(0, Label.TEXT, "• one", list_item=True), region(1, Label.TEXT, "• two", list_item=True))
    assert page_markdown(result) == "- one\n- two"


@pytest.mark.parametrize("mark", ["•", "1.", "12.", "154."])
def test_a_list_below_an_item_is_a_list_in_commonmark(mark):
    text = page_markdown(page(region(0, Label.TEXT, f"{mark} one\n  a. two\n    • three", list_item=True)))
    tokens = MarkdownIt("commonmark").parse(text)
    depths = [token.level for token in tokens if token.type == "list_item_open"]
    assert depths == [1, 3, 5]


def test_a_column_break_is_joined_and_the_figure_comes_after():
    result = page(
        region(0, Label.TEXT, "It goes to the mea-", continues=True),
        region(1, Label.FIGURE_TITLE, "Figure 1"),
        region(2, Label.TEXT, "dow and on."),
    )
    assert page_markdown(result) == "It goes to the meadow and on.\n\nFigure 1"


def test_a_page_break_is_joined_where_the_text_continues():
    pages = [
        page(region(0, Label.TEXT, "one thing that no", continues=True), region(1, Label.FOOTNOTE, "1 Note.")),
        page(
            region(0, Label.TABLE, TABLE, content_format=ContentFormat.HTML),
            region(1, Label.TEXT, "ledger has"),
            number=2,
        ),
        page(region(0, Label.TEXT, "A new start", continues=True), number=3),
        page(region(0, Label.TEXT, "Not its rest."), number=4),
    ]
    blocks = "".join(document_markdown(pages)).rstrip("\n").split("\n\n")
    assert blocks[0] == "one thing that no ledger has"
    assert blocks[1] == "1 Note."
    assert blocks[3:] == ["A new start", "Not its rest."]


def test_streaming_holds_back_no_more_than_the_open_end():
    pieces = document_markdown(
        iter([page(region(0, Label.TEXT, "Closed.")), page(region(0, Label.TEXT, "x"), number=2)])
    )
    assert next(pieces) == "Closed."


def test_a_failed_page_says_so_and_no_pages_are_nothing():
    failed = page(
        number=3, status=Status.FAILED, errors=[PageError(component="decode", category="crash", message="a -- b")]
    )
    assert page_markdown(failed) == "<!-- page 3 failed: a - - b -->"
    failed.page_number = None
    assert page_markdown(failed) == "<!-- the document failed: a - - b -->"
    failed.errors = [PageError(component="decode", category="crash", message="a ---><script>")]
    assert page_markdown(failed).count("-->") == 1
    assert "".join(document_markdown([])) == ""


def test_escaping_changes_structure_only():
    assert escape("# not a heading\n> nor a quote") == "\\# not a heading\n\\> nor a quote"
    assert escape("a*b c_d 3 < 4 $5") == "a*b c_d 3 < 4 $5"
    assert escape("<script>") == "\\<script>"
    assert escape("---") == "\\---"
    assert escape("* a note\n- - -\n=") == "\\* a note\n\\- - -\n\\="
    assert escape("-5 *a +b __c [1] see: d") == "-5 *a +b __c [1] see: d"
    assert escape("&lt;b&gt; & c") == "\\&lt;b\\&gt; & c"
    assert escape("  # no heading\n   [1]: no target\n#") == "  \\# no heading\n   \\[1]: no target\n\\#"
    assert escape("| a | b") == "| a | b"


@pytest.mark.parametrize("head", ["a | b\n--- | ---", "| a | b |\n| :-- | --: |", "a | b\n-|-"])
def test_no_cell_is_lost_to_a_table_that_signs_of_the_page_would_region(head):
    shown = MarkdownIt("gfm-like", {"linkify": False}).render(escape(f"{head}\n1 | 2 | three"))
    assert "three" in shown


def test_no_document_places_links_or_pictures():
    assert escape("![x](http://a.example/x.png)") == "![x]\\(http://a.example/x.png)"
    assert escape("[1]: http://a.example") == "\\[1]: http://a.example"


@pytest.mark.parametrize("name", ["Smith\n2001", "a\\\nb", r"a\]b", r"a\\", "n" * 999])
def test_what_looks_like_the_target_of_a_link_is_shown(name):
    assert "<p>[" in MarkdownIt().render(escape(f"[{name}]: 27"))


def test_foreign_html_is_rebuilt_or_shown_as_text():
    assert table_markdown('<table onclick="x"><tr><td><img src=x>a<td>b</table><script>') == (
        "<table><tr><td>a</td><td>b</td></tr></table>"
    )
    assert table_markdown("<script>x</script>") == "\\<script>x\\</script>"


def test_a_tables_own_caption_stands_above_it():
    captioned = TABLE.replace("<table>", "<table><caption>a [b](c) &amp; d</caption>")
    assert table_markdown(captioned) == f"a [b]\\(c) & d\n\n{table_markdown(TABLE)}"
    assert table_markdown(SPANS.replace("<table>", "<table><caption>x<br>y</caption>")) == SPANS.replace(
        "<table>", "<table><caption>x y</caption>"
    )
    text = embedding_text(page(region(0, Label.TABLE, captioned, content_format=ContentFormat.HTML)))
    assert text == "a [b](c) & d\nRag | Paper\n1 | 2"


def test_a_long_caption_names_its_figure_at_once():
    result = page(
        region(0, Label.IMAGE, None),
        region(1, Label.FIGURE_TITLE, "a" * 1_000_000, caption_of=0),
        image_crops=[ImageCrop(path="crops/a b_0.jpg", bbox=(0, 0, 10, 10), label=Label.IMAGE, region=0)],
    )
    assert page_markdown(result).startswith("![image](crops/a%20b_0.jpg)")


def test_listings_hold_their_own_fences():
    assert page_markdown(page(region(0, Label.ALGORITHM, "```\nx\n```"))) == "````\n```\nx\n```\n````"


def test_an_open_paragraph_does_not_wait_for_ever():
    opened = page(region(0, Label.TEXT, "one thing that no", continues=True))
    failed = page(number=2, status=Status.FAILED)
    rest = page(region(0, Label.TEXT, "ledger has"), number=3)
    assert "no\n\n<!--" in "".join(document_markdown([opened, failed, rest]))
    pictures = (page(region(0, Label.FIGURE_TITLE, f"Plate {n}"), number=n) for n in range(2, 1000))
    pieces = document_markdown(itertools.chain([opened], pictures))
    assert next(pieces) == "one thing that no"
    assert len(list(pictures)) > 900


def test_embedding_text_has_tables_row_by_row():
    result = page(
        region(0, Label.HEADER, "Journal", furniture=Furniture.PROVEN),
        region(1, Label.TEXT, "Prose.\n\nMore."),
        region(2, Label.TABLE, TABLE, content_format=ContentFormat.HTML),
        region(3, Label.FOOTNOTE, "1 Note."),
    )
    assert embedding_text(result) == "Prose.\nMore.\nRag | Paper\n1 | 2\n1 Note."


def test_embedding_text_has_what_holds_no_table_as_the_markdown_does():
    result = page(region(0, Label.TABLE, "no table at all", content_format=ContentFormat.HTML))
    assert embedding_text(result) == page_markdown(result) == "no table at all"


def test_document():
    document = Document.from_pages([page(region(0, Label.TABLE, TABLE, content_format=ContentFormat.HTML))])
    assert document.doc_id == "d"
    assert document.tables[0].to_html() == TABLE
    assert document.markdown.startswith("| Rag |")
    assert document.errors == []


def test_a_document_is_saved_inside_its_directory(tmp_path):
    record = page(region(0, Label.TEXT, "Prose."))
    record.doc_id = "../up"
    folder = tmp_path / "a" / "b"
    markdown = Document.from_pages([record], {"crops/../../../up.jpg": b"jpeg"}).save(folder)
    assert markdown.read_text() == "Prose.\n"
    assert markdown.parent == folder
    saved = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert saved == {markdown.name, markdown.with_suffix(".json").name, "crops/up.jpg"}
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize(
    ("text", "markdown"),
    [
        ("costs A$30 and 40$ today", r"costs A\$30 and 40\$ today"),
        ("costs $30 and $40", "costs $30 and $40"),
        ("__init__ of snake_case_name", r"\_\_init\_\_ of snake_case_name"),
        ("2*3*4", r"2\*3\*4"),
        ("p < 0.05* and 3 * 4", "p < 0.05* and 3 * 4"),
    ],
)
def test_signs_of_the_page_make_no_formulas_and_no_emphasis(text, markdown):
    assert escape(text) == markdown


def described(summary, *, with_crop=True):
    crops = [ImageCrop(path="crops/d.jpg", bbox=(0, 0, 1, 1), label=Label.IMAGE, region=0)] if with_crop else []
    image = region(0, Label.IMAGE, "lettering", description=Description(summary=summary))
    return page(image, region(1, Label.TEXT, "`code` and *stars* <b>"), image_crops=crops)


@settings(deadline=None)
@given(st.text(st.characters(codec="utf-8"), min_size=1) | st.text("[]()!`\\\\<>&*_#-$ a"))
@example("![x](http://evil)")
@example("ends in \\\\")
@example("`")
@example("<http://evil>")
def test_a_description_is_the_alternative_text_and_nothing_else(summary):
    shown, *_ = MarkdownIt().parse(page_markdown(described(summary)))[1].children
    tokens = MarkdownIt().parse(page_markdown(described(summary)))[1].children
    assert [(token.type, token.attrs) for token in tokens] == [("image", {"src": "crops/d.jpg", "alt": ""})]
    assert shown.content.startswith("image")


def test_without_its_picture_a_description_is_text():
    assert page_markdown(described("A mill.", with_crop=False)).startswith("image: A mill.\n\n")
    assert page_markdown(described("A mill.")).startswith("![image: A mill.](crops/d.jpg)\n\n")


def cut_table(index, row, **more):
    html = f"<table><thead><tr><th>Rag</th><th>Paper</th></tr></thead><tbody><tr>{row}</tr></tbody></table>"
    return region(index, Label.TABLE, html, content_format=ContentFormat.HTML, **more)


def test_parts_of_a_table_are_one_over_page_breaks_and_notes():
    pages = [
        page(
            region(0, Label.TEXT, "Prose."), cut_table(1, "<td>1</td><td>2</td>"), region(2, Label.FOOTNOTE, "1 Note.")
        ),
        page(cut_table(0, "<td>3</td><td>4</td>", joined_to="d_1/1"), number=2),
        page(cut_table(0, "<td>5</td><td>6</td>", joined_to="d_2/0"), region(1, Label.TEXT, "End."), number=3),
    ]
    table = "| Rag | Paper |\n| --- | --- |\n| 1 | 2 |\n| 3 | 4 |\n| 5 | 6 |"
    assert "".join(document_markdown(pages)) == f"Prose.\n\n{table}\n\n1 Note.\n\nEnd.\n"
    pages[1].regions[0].joined_to = "d_1/0"  # no table
    assert "".join(document_markdown(pages)).count("| Rag |") == 2
    del pages[1]
    assert "".join(document_markdown(pages)).count("| Rag |") == 2


def test_a_list_continues_on_the_next_page():
    items = page(region(0, Label.TEXT, "1. one\n2. two that", list_item=True))
    rest = page(region(0, Label.TEXT, "goes on", joined_to="d_1/0"), region(1, Label.TEXT, "End."), number=2)
    assert "".join(document_markdown([items, rest])) == "1. one\n2. two that goes on\n\nEnd.\n"
    more = page(region(0, Label.TEXT, "3. three", list_item=True, joined_to="d_1/0"), number=2)
    assert "".join(document_markdown([items, more])) == "1. one\n2. two that\n3. three\n"


def test_heads_without_proof_stay_unless_they_are_not_wanted():
    regions = region(0, Label.HEADER, "Dear miller,"), region(1, Label.TEXT, "Prose."), region(2, Label.NUMBER, "7")
    proven = region(3, Label.FOOTER, "Mills Ltd.", furniture=Furniture.PROVEN)
    result = with_markdown(page(*regions, proven))
    assert (result.markdown, result.left_out) == ("Dear miller,\n\nProse.", 2)
    assert embedding_text(result) == "Dear miller,\nProse."
    result = with_markdown(page(*regions, proven, leaves_out=Furniture.LIKELY))
    assert (result.markdown, result.left_out) == ("Prose.", 3)
