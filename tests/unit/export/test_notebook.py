import pytest
from synthetic_run import page, region

from pagemill.document.labels import Label
from pagemill.document.page import ImageCrop, Mark, Span
from pagemill.export import notebook
from pagemill.export.document import Document, Link

EVIL = "<script>alert(1)</script><img src=x onerror=alert(1)>"


@pytest.fixture
def document() -> Document:
    link = Span(4, 8, Mark.LINK, "https://example.org/")
    regions = [
        region(0, Label.DOC_TITLE, "A title", level=1),
        region(1, Label.TEXT, EVIL),
        region(2, Label.TEXT, "see here", spans=(link, Span(0, 3, Mark.LINK, "javascript:alert(1)"))),
        region(3, Label.IMAGE, None),
    ]
    crop = ImageCrop(path="crops/d 1.jpg", bbox=(0, 0, 500, 500), label=Label.IMAGE, region=3)
    return Document.from_pages([page("d", 1, regions, image_crops=[crop])], {"crops/d 1.jpg": b"jpeg"})


def test_a_document_says_what_it_has(document: Document):
    assert repr(document) == "Document('d', 1 page, 0 tables)"
    assert repr(document.pages[0]) == "PageResult('d_1', done, 4 regions)"
    assert repr(document.pages[0].regions[0]) == "Region(0, doc_title, 'A title')"
    assert [each.content for each in document.headings] == ["A title"]
    assert [each.index for each in document.figures] == [3]
    assert document.links[0] == Link("here", "https://example.org/", 1)
    assert document.to_chunks(max_tokens=64)[0].headings == ("A title",)


def test_what_a_document_says_is_text(document: Document):
    shown = [document, document.pages[0], document.pages[0].regions[1]]
    for html in (each._repr_html_() for each in shown):
        assert "&lt;script&gt;" in html
        assert "<script" not in html
        assert "<img src=x" not in html
        assert " id=" not in html
        assert "javascript:" not in html
    for markdown in (each._repr_markdown_() for each in shown):
        assert r"\<script" in markdown
        assert "<script" not in markdown.replace(r"\<", "")
        assert "<img" not in markdown.replace(r"\<", "")


def test_pictures_come_along_with_a_document_alone(document: Document):
    assert 'src="data:image/jpeg;base64,anBlZw=="' in document._repr_html_()
    assert "<img" not in document.pages[0]._repr_html_()
    assert "![" not in document.pages[0]._repr_markdown_()
    assert "image" in document.pages[0].regions[3]._repr_html_()


def test_what_is_shown_is_bounded(monkeypatch: pytest.MonkeyPatch, document: Document):
    monkeypatch.setattr(notebook, "MAX_PICTURES", 3)
    assert "data:" not in document._repr_html_()
    monkeypatch.setattr(notebook, "MAX_PAGES", 1)
    pages = [page("d", number, [region(0, Label.TEXT, f"page {number}.")]) for number in (1, 2, 3)]
    html = notebook.pages_html(pages)
    assert "page 1." in html
    assert "page 2." not in html
    assert "and 2 more pages" in html
