"""Inline marks and blocks inside list items, in the formats for readers."""

from markdown_it import MarkdownIt
from synthetic_run import page, region

from pagemill.document.labels import Label
from pagemill.document.page import ContentFormat, Mark, Span
from pagemill.export.docjson import document_json, pages_from_docjson
from pagemill.export.embedding_text import embedding_text
from pagemill.export.html import document_html
from pagemill.export.markdown import document_markdown, page_markdown

LINK = Span(4, 8, Mark.LINK, "https://x.org/?a=1&b=2")
BOLD_TITLE = Span(0, 13, Mark.BOLD)
IN_ITEMS = Span(0, 5, Mark.BOLD), Span(16, 19, Mark.ITALIC)
TABLE = '<table><tr><td><b>a</b> b</td><td><a href="#page=3&amp;top=10">c</a></td></tr></table>'


def body(*pages):
    return "".join(document_html(pages)).partition("<main>\n")[2].partition("</main>")[0]


def test_each_kind_of_region_shows_its_marks():
    mill = page(
        "d",
        1,
        [
            region(0, Label.PARAGRAPH_TITLE, "All bold code", level=2, spans=(BOLD_TITLE, Span(9, 13, Mark.CODE))),
            region(1, Label.TEXT, "• see here\n  2. two x", list_item=True, spans=IN_ITEMS),
            region(2, Label.CONTENT, "One … 1\nTwo … 2", spans=(Span(8, 11, Mark.BOLD),)),
            region(3, Label.FOOTNOTE, "5 A note", spans=(Span(0, 1, Mark.SUPERSCRIPT),)),
            region(4, Label.ALGORITHM, "a * b", spans=(Span(0, 1, Mark.BOLD),)),
            region(5, Label.TEXT, "See here.", spans=(LINK,)),
        ],
    )  # fmt: skip
    assert page_markdown(mill).split("\n\n") == [
        "## All bold `code`",
        "- **see** here\n     2. *two* x",
        "One … 1  \n**Two** … 2",
        "```\na * b\n```",
        "See [here](https://x.org/?a=1&b=2).",
        "<sup>5</sup> A note",
    ]
    html = body(mill)
    assert "<h2>All bold <code>code</code></h2>" in html
    assert '<ul><li><b>see</b> here<ol><li value="2"><i>two</i> x</li></ol></li></ul>' in html
    assert "<br>\n<b>Two</b> … 2" in html
    assert '<p>See <a href="https://x.org/?a=1&amp;b=2">here</a>.</p>' in html
    assert "<aside><p><sup>5</sup> A note</p></aside>" in html
    assert embedding_text(mill).splitlines()[-1] == "See here."
    (read,) = pages_from_docjson("".join(document_json([mill])))
    assert [each.spans for each in read.regions] == [each.spans for each in mill.regions]


def test_a_mark_continues_over_a_page_break_and_over_its_hyphen():
    first = region(0, Label.TEXT, "It goes to the mea-", continues=True, spans=(Span(11, 19, Mark.BOLD),))
    rest = region(0, Label.TEXT, "dow and on.", spans=(Span(0, 3, Mark.BOLD), Span(8, 10, Mark.ITALIC)))
    pages = [page("d", 1, [first]), page("d", 2, [rest])]
    assert "".join(document_markdown(pages)) == "It goes to **the meadow** and *on*.\n"
    assert "<b>the mea</b>" in body(*pages)


def test_blocks_inside_items_are_part_of_the_list():
    mill = page(
        "d",
        1,
        [
            region(0, Label.TEXT, "1. one\n  • deep", list_item=True),
            region(1, Label.TEXT, "Of *deep*.", list_depth=2),
            region(2, Label.ALGORITHM, "if x:\n\n    y", list_depth=1),
            region(3, Label.TEXT, "• nested", list_item=True, list_depth=1),
            region(4, Label.TEXT, "2. two", list_item=True),
            region(5, Label.TEXT, "After."),
        ],
    )
    markdown = page_markdown(mill)
    html = MarkdownIt("commonmark").render(markdown)
    assert html.count("<ol>") == 1
    assert html.count("</li>") == 4
    assert "<pre><code>if x:\n\n    y\n</code></pre>" in html
    assert html.endswith("</ol>\n<p>After.</p>\n")
    own = body(mill)
    assert own.count("<ol>") == 1
    assert (
        "deep\n<p>Of *deep*.</p>\n</li></ul>\n<pre>if x:\n\n    y</pre>\n<ul><li>nested</li></ul></li>\n<li value"
        in own
    )
    alone = page(
        "d", 2, [region(0, Label.TEXT, "The rest.", list_depth=1), region(1, Label.TEXT, "  3. three", list_item=True)]
    )
    assert page_markdown(alone) == "The rest.\n\n3. three"


def test_marks_beside_formulas():
    content = "the *bold* sum $a_1*b$ of **all** x"
    spans = (Span(4, 22, Mark.BOLD), Span(15, 18, Mark.ITALIC), Span(26, 33, Mark.LINK, "https://x.org"))
    text = region(0, Label.TEXT, content, content_format=ContentFormat.MARKDOWN, spans=spans)
    markdown = page_markdown(page("d", 1, [text]))
    assert markdown == r"the **\*bold\* sum *$a_1*b$*** of [\*\*all\*\*](https://x.org) x"
    item = region(0, Label.TEXT, "• a $x$ b\n• c", list_item=True, content_format=ContentFormat.MARKDOWN)
    item.spans = (Span(12, 13, Mark.BOLD),)
    assert page_markdown(page("d", 1, [item])) == "- a $x$ b\n- **c**"


def test_a_number_at_a_line_start_is_text_where_it_is_no_item():
    text = region(0, Label.TEXT, "1986. A good year.\n\n+ 4 degrees")
    assert page_markdown(page("d", 1, [text])) == "1986\\. A good year.\n\n\\+ 4 degrees"


def test_a_page_that_a_table_links_to_has_its_address_in_html():
    cells = region(0, Label.TABLE, TABLE, content_format=ContentFormat.HTML)
    assert '<td><b>a</b> b</td><td><a href="#page-3">c</a></td>' in body(page("d", 1, [cells]))
