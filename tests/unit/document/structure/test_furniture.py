"""Running heads, running feet and page numbers."""

import pytest
from page_layouts import BODY, HUGE, PROSE, SMALL, heading, page, prose, read, region

from pagemill.document.labels import Label
from pagemill.document.page import Furniture


def head(text: str, top: int = 40, label: Label = Label.TEXT, **fields):
    return region(label, text, top, BODY, **fields)


def proven(pages) -> list[str]:
    return [each.content or "" for each in read(pages) if each.furniture is Furniture.PROVEN]


def test_what_repeats_at_its_place_is_proven_whatever_its_number():
    pages = [
        page(n, head(f"Mills · {n}"), prose(text=f"{PROSE}{n}", high=400), head(f"{n}", 950)) for n in range(8, 12)
    ]
    assert len(proven(pages)) == 8
    assert [each.label for each in read(pages)[:3]] == [Label.HEADER, Label.TEXT, Label.NUMBER]


def test_pages_of_a_book_are_mirrored():
    sides = ({"left": 100, "right": 300}, {"left": 700, "right": 900})
    pages = [page(n, head("The Mill Book", **sides[n % 2]), prose()) for n in range(1, 6)]
    assert len(proven(pages)) == 5


def test_one_page_alone_is_no_proof():
    pages = [page(1, head("Dear miller,", label=Label.HEADER), prose()), page(2, prose())]
    assert [each.furniture for each in read(pages)] == [Furniture.LIKELY, None, None]
    assert proven([page(1, head("7", 950, Label.NUMBER), prose())]) == ["7"]


@pytest.mark.parametrize("where", [40, 480])
def test_on_pages_far_apart_a_text_may_repeat(where: int):
    other = [page(n, prose(text=f"{PROSE}{n}")) for n in range(2, 9)]
    ends = [page(n, head("Summary", where), prose(600, text=f"{PROSE}{n}")) for n in (1, 9)]
    assert proven([ends[0], *other, ends[1]]) == []


def test_what_stands_inside_the_page_is_no_furniture():
    pages = [page(n, prose(40, text=f"{PROSE}{n}", high=60), head("Summary", 110), prose(200)) for n in range(1, 5)]
    assert proven(pages) == []


def test_titles_of_slides_stay():
    assert proven([page(n, heading("Results", 60, HUGE), prose()) for n in range(1, 5)]) == []
    assert proven([page(n, heading(f"Chapter {n}", 60, BODY), prose(text=f"{PROSE}{n}")) for n in range(1, 5)]) == []


def test_what_a_page_says_alone_stays():
    assert proven([page(n, head(f"Page {n}.")) for n in range(1, 5)]) == []


def test_a_number_that_grows_with_the_pages_is_a_page_number():
    names = ("Water", "Wheels", "Axles", "Paper")
    pages = [page(n, prose(), heading(f"{names[n]} {n + 12}", 950, SMALL)) for n in range(4)]
    assert proven(pages) == ["Water 12", "Wheels 13", "Axles 14", "Paper 15"]
    far = [page(n, prose(), heading(f"{names[n]} {n * n + 12}", 950, SMALL)) for n in range(4)]
    assert proven(far) == []


def test_a_bold_page_number_between_running_heads_is_furniture():
    heads = [heading(f"{n + 8} Mills" if n % 2 else f"The Mill Book {n + 8}", 60, SMALL) for n in range(6)]
    pages = [page(n, heads[n], prose(text=f"{PROSE}{n}")) for n in range(6)]
    assert len(proven(pages)) == 6
    opening = page(6, prose(text=f"{PROSE}6"), heading("14", 835, SMALL))  # a chapter's first page has it at its foot
    assert proven([*pages, opening])[-1] == "14"


def test_numbered_headings_at_the_head_of_pages_stay():
    names = ("Water", "Wheels", "Axles", "Paper")
    assert proven([page(n, heading(f"{n + 1} {names[n]}", 60, SMALL), prose()) for n in range(4)]) == []


def test_rows_of_lists_at_the_head_of_pages_are_not_taken_for_running_heads():
    pages = [page(n, head(f"{n * n + 20}: turn the wheel"), prose(text=f"{PROSE}{n}")) for n in range(1, 6)]
    assert proven(pages) == []


@pytest.mark.parametrize("first", [1, 2021])
def test_numbered_lines_at_the_foot_are_no_running_feet(first: int):
    said = ("Smith, History of Rail", "Jones, Iron Ways", "Ibid., second volume", "Letter of the board", "Miller, 1950")
    pages = [
        page(n, prose(text=f"{PROSE}{n}"), head(f"{first + n} {text}", 940, Label.FOOTER))
        for n, text in enumerate(said)
    ]
    assert proven(pages) == []


@pytest.mark.parametrize(("top", "high"), [(65, 800), (140, 400)])
def test_questions_with_a_page_each_are_no_running_heads(top: int, high: int):
    pages = [
        page(n, head(f"Question {n}"), prose(top, f"{PROSE}{n}", high=high), head(f"{n}", 950)) for n in range(1, 6)
    ]
    assert proven(pages) == list("12345")
    pages = [page(n, head(f"Part {n // 4}"), prose(top, f"{PROSE}{n}", high=high)) for n in range(4, 12)]
    assert len(proven(pages)) == 8


def test_headings_that_are_an_ordinal_are_no_page_numbers():
    pages = [page(n, heading(f"{n}.", 40, BODY), prose(text=f"{PROSE}{n}")) for n in range(1, 5)]
    assert proven(pages) == []


def test_why_a_text_is_left_out_or_kept_is_logged(caplog):
    caplog.set_level("INFO", logger="pagemill.document")
    proven([page(n, head(f"Mills · {n}", label=Label.HEADER), prose(text=f"{PROSE}{n}", high=400)) for n in (8, 9)])
    proven([page(1, head("Dear miller,", label=Label.HEADER), prose())])
    assert [record.getMessage() for record in caplog.records] == [
        "d_8/0: header left out: other pages have the same at its place",
        "d_9/0: header left out: other pages have the same at its place",
        "d_1/0: header kept: no other page proves that it is one",
    ]
