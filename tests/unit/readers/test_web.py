"""Web pages, Markdown and books: nothing is lost without a word."""

import zipfile
from pathlib import Path

import made_documents as made
import pytest
from test_formats import blocks, headings, items, read, texts

from pagemill.document.labels import Label
from pagemill.readers.base import Document
from pagemill.readers.html import of_markup


def web(folder: Path, text: str, name: str = "a.html") -> Document:
    (folder / name).write_text(text, encoding="utf-8")
    return read(folder / name, "html:read_markdown" if name.endswith(".md") else "html:read_html")


def test_a_rule_at_the_start_of_markdown_is_no_front_matter(tmp_path: Path):
    assert texts(web(tmp_path, "---\n\nFirst\n\n---\n\nSecond\n", "a.md")) == ["First", "Second"]
    front = web(tmp_path, "---\ntitle: Only this\n---", "a.md")
    assert (front.info.title, texts(front)) == ("Only this", [])


@pytest.mark.parametrize("tag", ["title", "script", "textarea", "style", "iframe"])
def test_empty_elements_of_xml_do_not_swallow_what_follows(tmp_path: Path, tag: str):
    page = f'<html><head><title/></head><body><{tag} a="x > y"/><p>One<br/>two <![CDATA[a < b]]></p></body></html>'
    assert texts(web(tmp_path, page, "a.xhtml")) == ["One\ntwo a < b"]
    assert texts(web(tmp_path, f'<?xml version="1.0"?>{page}')) == ["One\ntwo a < b"]
    book = made.book(tmp_path / "a.epub")
    with zipfile.ZipFile(book) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(book, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, page if name == "OPS/a.xhtml" else data)
    assert texts(read(book, "epub:read")) == ["One\ntwo a < b"]


def test_preformatted_text_keeps_line_breaks(tmp_path: Path):
    page = web(tmp_path, "<pre>a<br>b  <b>c</b><div>d</div>e</pre>")
    assert texts(page, Label.ALGORITHM) == ["a\nb  cd\ne"]


def test_lists_keep_what_is_in_no_item_and_print_no_scripts(tmp_path: Path):
    page = web(
        tmp_path,
        '<ul>loose <b>bold</b><li>one</li><script>no()</script><p>para</p><li style="display:none">not</li>'
        '<div style="display:none">nor</div><li>two</li></ul>',
    )
    assert items(page) == ["• one", "• two"]
    assert texts(page) == ["loose bold", "• one", "para", "• two"]


def test_headings_keep_the_alternative_texts_of_their_pictures(tmp_path: Path):
    page = web(tmp_path, '<h1><img src="a.png" alt="Logo"> Firm</h1>')
    assert headings(page) == [(1, "Firm")]
    assert [block.picture.alternative for block in blocks(page) if block.picture] == ["Logo"]


def test_footnotes_of_markdown_stay(tmp_path: Path):
    page = web(tmp_path, "Claim[^1], [link][a].\n\n[^1]: note\n\n[a]: https://example.org\n", "a.md")
    assert texts(page) == ["Claim[^1], link.", "[^1]: note"]


@pytest.mark.parametrize("tag", ["script", "title", "textarea", "select"])
def test_an_open_tag_in_markdown_does_not_swallow_the_rest(tmp_path: Path, tag: str):
    assert texts(web(tmp_path, f"Use the <{tag}> tag.\n\nMore.\n", "a.md")) == [f"Use the <{tag}> tag.", "More."]
    assert texts(web(tmp_path, f"A <{tag}>x</{tag}>b.\n\n<{tag}>y</{tag}>\n\nMore.\n", "a.md"))[-1] == "More."


def test_what_a_page_hides_is_counted():
    found = of_markup('<p>a<span hidden>b</span></p><div style="display: none"> </div><div hidden>c</div>')
    assert [block.content for part in found.parts for block in part.blocks] == ["a"]
    assert found.parts[0].notes == ["not read: 2 hidden text elements"]


def test_forms_show_what_is_typed_and_chosen():
    found = of_markup(
        '<p>Name: <input value="Kim"><input type="hidden" value="x"><select><option>a<option selected>b</select></p>'
        '<ul><li><input type="checkbox" checked>done</ul><input type="checkbox"><dialog open>open</dialog>'
        "<dialog>no</dialog><svg><title>icon</title></svg><svg><text>axis</text></svg>"
    )
    assert [block.content for part in found.parts for block in part.blocks] == ["Name: Kim b", "• ☒ done", "open"]
    assert found.parts[0].notes == ["not read: 1 drawing with text"]


def test_tags_of_other_programs_in_emphasis_end_no_paragraph():
    """As Word writes them into mail."""
    found = of_markup("<p>Dear <b>Mr <o:p></o:p>Smith</b>, how <i>are <nobr>you</nobr></i>?</p>")
    (block,) = found.parts[0].blocks
    assert (block.content, len(block.spans)) == ("Dear Mr Smith, how are you?", 2)


def test_paragraphs_in_emphasis_are_paragraphs():
    """As pages of Google Docs are."""
    found = of_markup("<b><p>one</p><p>two</p></b><p>three <b>bold</b></p>")
    assert [block.content for part in found.parts for block in part.blocks] == ["one", "two", "three bold"]
