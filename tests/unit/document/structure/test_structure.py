"""The structure of a document as a whole: a function of its facts, laid over its records."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from page_layouts import HUGE, STYLES, heading, page, prose, read

from pagemill.document.labels import Label
from pagemill.document.page import ContentFormat, DocumentInfo, Furniture, Mark, PageResult, Region, Span
from pagemill.document.structure import (
    apply,
    decode_overlay,
    derive,
    encode_overlay,
    facts_from,
    facts_of,
    is_current,
    slug,
    structured,
)

PAGES = [
    page(n, heading(f"{n} Wheels", 100), prose(text=f"Number {n} of the mill and", continues=True)) for n in range(1, 6)
]


def test_anchors_are_those_of_github():
    pages = [page(1, heading("Water & Wheels!", 100), heading("Water  wheels", 200), heading("Water & Wheels", 300))]
    assert [each.anchor for each in read(pages)] == ["water--wheels", "water-wheels", "water--wheels-1"]
    assert [slug(text) for text in ("3.1 Räder_a", "물레방아 소개", "!?")] == ["31-räder_a", "물레방아-소개", ""]


def test_links_lead_to_the_heading_at_their_place():
    targets = ["#page=2&top=190", "#page=2&top=700", "#page=9&top=1", "#page=2", "https://mill.example/"]
    spans = tuple(Span(n, n + 1, Mark.LINK, target) for n, target in enumerate(targets))
    cell = '<table><tr><td><a href="#page=2&amp;top=190">Wheels</a></td></tr></table>'
    table = msgspec.structs.replace(prose(700), label=Label.TABLE, content=cell, content_format=ContentFormat.HTML)
    pages = [page(1, prose(spans=spans), table), page(2, heading("Water", 100), heading("Wheels", 200), prose(300))]
    found = read(pages)
    assert [span.target for span in found[0].spans] == ["#wheels", *targets[1:]]
    assert '<a href="#wheels">' in (found[1].content or "")
    assert pages[0].regions[0].spans == spans


def test_records_stay_as_they_are():
    before = msgspec.json.encode(PAGES)
    assert msgspec.json.encode(list(structured(PAGES))) != before == msgspec.json.encode(PAGES)


def test_a_page_without_facts_stays_as_it_is_and_breaks_joins():
    facts = [facts_from(facts_of(each)) for each in PAGES]
    overlay = derive([facts[0], None, *facts[2:]])
    assert set(overlay.pages) == {f"d_{n}" for n in (1, 3, 4, 5)}
    assert derive([]) == derive([None]) and not derive([None]).pages


def test_facts_of_another_version_or_of_damage_are_none():
    stored = facts_of(PAGES[0])
    assert is_current(stored)
    other = stored[:1] + bytes([127]) + stored[2:]
    assert (is_current(other), facts_from(other), facts_from(b"\x91"), facts_from(b"")) == (False, None, None, None)


def test_text_that_utf8_cannot_hold():
    assert facts_from(facts_of(page(1, prose(text="a \ud800 mill")))) is not None


texts = st.sampled_from(["", "1 Mill", "1.1 Water", "Mill", "water", "- oak", "7", "가", "a" * 300]) | st.text(
    max_size=9
)
regions = st.builds(
    lambda label, text, top, style, furniture, tag, goes_on: Region(
        index=0,
        label=label,
        content=text,
        bbox_2d=(100, top, 900, top + 20),
        bbox=(100.0, float(top), 900.0, top + 20.0),
        style=style,
        furniture=furniture,
        tag=tag,
        continues=goes_on,
        content_format=ContentFormat.HTML if label is Label.TABLE else ContentFormat.TEXT,
    ),
    st.sampled_from(Label),
    texts | st.just("<table><tr><th>a<td colspan=2>b</tr></table>"),
    st.integers(0, 980),
    st.none() | st.integers(0, 9),
    st.sampled_from([None, *Furniture]),
    st.sampled_from(["", "P", "H1", "H2", "H9"]),
    st.booleans(),
)
documents = st.lists(st.lists(regions, max_size=5), max_size=5)


@given(documents, st.randoms(use_true_random=False))
def test_any_document_has_a_structure_whatever_the_order_in_which_its_pages_came(document, random):
    pages = [page(number, *each) for number, each in enumerate(document, 1)]
    shuffled = [(each.page_number, facts_of(each)) for each in pages]
    random.shuffle(shuffled)
    overlay = derive(facts_from(facts) for _, facts in sorted(shuffled))
    assert encode_overlay(overlay) == encode_overlay(derive(facts_from(facts_of(each)) for each in pages))
    assert decode_overlay(encode_overlay(overlay)) == overlay
    seen = [apply(each, overlay) for each in pages]
    names = [each.anchor for result in seen for each in result.regions if each.anchor]
    assert len(names) == len(set(names))
    for result, before in zip(seen, pages, strict=True):
        for new, old in zip(result.regions, before.regions, strict=True):
            assert (new.content, new.bbox, new.index) == (old.content, old.bbox, old.index)
            assert new.level is None or 1 <= new.level <= 6 or new.level == old.level


@pytest.mark.slow
def test_a_long_document_is_bounded():
    long = [
        page(n, heading(f"{n} Wheels", 100), *(prose(200 + 30 * at, text=f"{n} {at}") for at in range(20)))
        for n in range(1, 501)
    ]
    facts = [facts_of(each) for each in long]
    assert sum(map(len, facts)) < 500 * 21 * 400
    assert len(encode_overlay(derive(map(facts_from, facts)))) < 500 * 200


def test_what_a_document_says_of_itself_is_optional():
    assert derive([facts_from(facts_of(PAGES[0]))]) == derive([facts_from(facts_of(PAGES[0]))], DocumentInfo())
    assert isinstance(PAGES[0], PageResult) and STYLES[-1] is HUGE
