import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic_run import TABLE, failed_page, page, region, sample_pages

from pagemill.document.labels import Label
from pagemill.document.page import ContentFormat, Description, ImageCrop, PageResult
from pagemill.export.html import document_html, write_html
from pagemill.export.html_lists import list_html

VOID = {"meta", "img", "br"}
TAGS = {
    *("html", "head", "meta", "title", "style", "body", "main", "nav", "a", "span", "p", "aside", "pre"),
    *("h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "figure", "figcaption", "img", "div", "br"),
    *("table", "caption", "thead", "tbody", "tr", "td", "th"),
}


class Checked(HTMLParser):
    """Checks that tags are ours and well nested; collects texts, ids and attributes."""

    def __init__(self, document: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[str] = []
        self.attributes: list[tuple[str, dict[str, str | None]]] = []
        self.feed(document)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS
        self.attributes.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.texts.append(data)


def body(pages: list[PageResult]) -> str:
    document = "".join(document_html(pages))
    Checked(document)
    return document.split("<main>\n")[1].split("</main>")[0]


def test_a_paragraph_over_a_page_break_is_one_with_the_mark_at_the_break() -> None:
    pages = sample_pages()[:2]
    text = body(pages)
    mark = '<span class="page" id="page-2" data-page="2"></span>'
    assert f"<p>Water turns the wheel and the wheel turns the bea{mark}ter, day and night.</p>" in text
    assert text.count('id="page-2"') == text.count('id="page-1"') == 1
    assert text.startswith('<span class="page" id="page-1"')
    assert "<h1>Mills &amp; &lt;Machines&gt;</h1>" in text
    assert "never shown" not in text


def test_a_caption_stands_on_its_side_of_the_table() -> None:
    text = body(sample_pages()[1:2])
    figure = re.search(r"<figure>(.*?)</figure>", text)
    assert figure is not None
    assert figure[1].startswith("<figcaption>Table 1: Weights</figcaption>")
    assert '<th rowspan="2">Vat</th><th colspan="2">Weight</th>' in figure[1]
    assert text.count("Table 1") == 1


def test_a_table_keeps_its_own_caption_also_where_layout_saw_text() -> None:
    said = "<table><caption>Sales &amp; more</caption><tr><td>1</td></tr></table>"
    for label in (Label.TABLE, Label.TEXT):
        assert said in body([page("d", 1, [region(0, label, said, content_format=ContentFormat.HTML)])])


def test_a_picture_is_named_relative_to_the_file() -> None:
    first = sample_pages()[0]
    first.image_crops = [ImageCrop(path="crops/a b'\".jpg", bbox=(0, 0, 9, 9), label=Label.IMAGE, region=2)]
    document = "".join(document_html([first], crops_root="../"))
    (picture,) = [attributes for tag, attributes in Checked(document).attributes if tag == "img"]
    assert picture["src"] == "../crops/a%20b%27%22.jpg"
    assert "</div><figcaption>" not in document
    assert re.search(r"<img [^>]*><figcaption>Figure 1: The mill</figcaption></figure>", document)


def test_a_caption_without_its_picture_is_still_said() -> None:
    assert "<figure><figcaption>Figure 1: The mill</figcaption></figure>" in body(sample_pages()[:1])


def test_a_failed_page_says_so_and_ends_an_open_paragraph() -> None:
    text = body([sample_pages()[0], failed_page("report", 2, message="<b>no</b>"), sample_pages()[1]])
    assert '<p class="failed">Page 2 failed: &lt;b&gt;no&lt;/b&gt;</p>' in text
    assert "the bea-</p>" in text


def test_formulas_code_footnotes_and_contents() -> None:
    text = body(
        [
            page(
                "d",
                1,
                [
                    region(0, Label.FOOTNOTE, "1 A note."),
                    region(1, Label.DISPLAY_FORMULA, r"\frac{a}{b}", content_format=ContentFormat.LATEX),
                    region(2, Label.ALGORITHM, "if a < b:\n    stop"),
                    region(3, Label.CONTENT, "One 1\nTwo 2"),
                    region(4, Label.PARAGRAPH_TITLE, "Deep\nheading", level=9),
                    region(5, Label.TEXT, "one\n\ntwo"),
                ],
            )
        ]
    )
    assert r'<pre class="formula latex">\frac{a}{b}</pre>' in text
    assert "<pre>if a &lt; b:\n    stop</pre>" in text
    assert "<p>One 1<br>\nTwo 2</p>" in text
    assert "<h6>Deep heading</h6>" in text
    assert "<p>one</p>\n<p>two</p>" in text
    assert text.rstrip().endswith("<aside><p>1 A note.</p></aside>")


def test_the_policy_lets_only_the_style_and_neighbouring_pictures_through() -> None:
    document = "".join(document_html(sample_pages()[3:]))
    policy = next(
        attributes["content"] or ""
        for tag, attributes in Checked(document).attributes
        if attributes.get("http-equiv") == "Content-Security-Policy"
    )
    assert "default-src 'none'" in policy
    assert "img-src 'self'" in policy
    assert "script" not in policy
    assert '<html lang="en">' in document


@pytest.mark.parametrize("language", ["und-Latn", 'en"><script>', "", "english"])
def test_a_language_that_is_none_is_not_said(language: str) -> None:
    assert "<html>" in "".join(document_html([page("d", 1, languages=(language,))]))


anything = st.text(max_size=30) | st.sampled_from(
    ["</p><script>alert(1)</script>", "<!--", '" onload="x', "</style>", "&lt;", "\0", "<table><tr><td><script>x"]
)


@given(anything, st.sampled_from(list(Label)), st.sampled_from(list(ContentFormat)), st.booleans(), st.booleans())
def test_no_content_becomes_markup(
    content: str, label: Label, content_format: ContentFormat, item: bool, open_end: bool
) -> None:
    regions = [
        region(0, label, content, content_format=content_format, list_item=item, continues=open_end),
        region(1, Label.TEXT, content, caption_of=0),
    ]
    one, two = page("d", 1, regions), page("d", 2, regions)
    one.doc_id = two.doc_id = content
    checked = Checked("".join(document_html([one, two])))
    assert all(not name.startswith("on") for _, attributes in checked.attributes for name in attributes)


@given(st.lists(st.tuples(st.integers(0, 6), st.sampled_from(["- ", "• ", "3. ", "(a) ", "", "가. "]), anything)))
def test_lists_are_well_nested_and_say_all(items: list[tuple[int, str, str]]) -> None:
    lines = [" " * indent + mark + " ".join(text.split()) for indent, mark, text in items]
    checked = Checked(list_html(lines))
    assert len([tag for tag, _ in checked.attributes if tag == "li"]) == sum(bool(line.strip()) for line in lines)


def test_lists_keep_numbers_and_levels() -> None:
    assert list_html(["3. c", "   - deep", "4. d"]) == (
        '<ol><li value="3">c<ul><li>deep</li></ul></li>\n<li value="4">d</li></ol>'
    )
    assert list_html(["(a) x"]) == '<ul><li class="marked">(a) x</li></ul>'


def test_documents_and_their_list(tmp_path) -> None:  # type: ignore[no-untyped-def]
    pages = sample_pages()
    write_html(tmp_path, "run", [("report", pages[:3]), ("../x", pages[3:])])
    names = sorted(path.name for path in (tmp_path / "documents").iterdir())
    assert names[1] == "report.html"
    assert names[0].startswith("_x-") or names[0].endswith(".html")
    index = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert '<a href="documents/report.html">report</a> <span>3 pages, 1 failed</span>' in index
    for target in re.findall(r'href="([^"]+)"', index):
        assert (tmp_path / target).is_file()


def test_the_list_escapes_names(tmp_path) -> None:  # type: ignore[no-untyped-def]
    write_html(tmp_path, "<run>", [("<b>", sample_pages()[3:])])
    text = (tmp_path / "index.html").read_text(encoding="utf-8")
    Checked(text)
    assert "&lt;b&gt;" in text
    assert TABLE not in text


def test_a_description_is_the_alternative_text():
    image = region(0, Label.IMAGE)
    image.description = Description(summary='A "mill" <b>')
    shown = page("d", 1, [image])
    shown.image_crops = [ImageCrop(path="crops/d.jpg", bbox=(0, 0, 1, 1), label=Label.IMAGE, region=0)]
    (picture,) = [named for tag, named in Checked("".join(document_html([shown]))).attributes if tag == "img"]
    assert picture["alt"] == 'A "mill" <b>'
    shown.image_crops = []
    assert 'A "mill" <b>' in " ".join(Checked("".join(document_html([shown]))).texts)
