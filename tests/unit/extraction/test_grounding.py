import msgspec
import pytest
from extraction_pages import page

from pagemill.document.page import ContentFormat
from pagemill.extraction.grounding import PageText, choose_places

BILL = page(
    1,
    "Invoice  INV-2024-0117",
    "Date: 5 March 2024     Due: 04.04.2024",
    "Wheelbridge Paper Mill, Tail Race Lane 12",
    "12345 Wheelbridge",
    "Blue paper   2   3.50   7.00",
    "Board        1   7.00   7.00",
    "Total                  1.014,00 EUR",
)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("INV-2024-0117", "INV-2024-0117"),
        ("inv–2024–0117", "INV-2024-0117"),  # another dash, another case
        ("2024-03-05", "5 March 2024"),
        ("2024-04-04", "04.04.2024"),
        (1014, "1.014,00"),
        ("1014.00", "1.014,00"),
        (3.5, "3.50"),
        ("Tail Race Lane 12\n12345 Wheelbridge", "Tail Race Lane 12 12345 Wheelbridge"),
        ("Wheelbrigde Paper Mill", "Wheelbridge Paper Mill"),
    ],
)
def test_found(value, said):
    best = PageText(0, BILL).places(value)[0]
    assert best.text.rstrip(",") == said


@pytest.mark.parametrize(
    "value",
    [
        "INV-2024-0118",  # one digit differs
        "0117-2024",
        "2024-05-03",
        "2024-13-05",
        "ridge",  # inside of a word
        "Brown paper mill",
        101,
        1014.5,
        14,
        "14",
        True,
        None,
        "",
        "x" * 5000,
    ],
)
def test_not_found(value):
    assert PageText(0, BILL).places(value) == []


@pytest.mark.parametrize(
    ("value", "text", "said"),
    [
        (1234567891, "No. 1234567890", None),
        ("1234567891", "No. 1234567890", None),
        (1234567890, "No. 1234567890", "1234567890"),
        (12345678901234567891, "12345678901234567890", None),
        (0.1, "0.10000000001", None),
        ("1234", "No. 01234", None),
        ("01234", "No. 1234", None),
        ("01234", "No. 01234", "01234"),
        (7, "No. 007", "007"),  # a number has no zeros before it that could differ
        (-100, "100.00 paid", None),
        ("-100", "100.00 paid", None),
        (100, "balance -100.00", None),
        ("100", "balance -100.00", None),
        (-100, "balance \u2212100.00", "100.00"),  # a minus sign
        (-100, "balance (100.00)", "100.00"),
        (-100, "balance -€ 100.00", "100.00"),
        (-100, "balance - 100.00", "100.00"),
        (-100, "balance 100.00-", "100.00"),
        (100, "part A-100", "100"),
        (-100, "part A-100", None),
        (-100, "50 - 100", None),
        (-100, "2-100", None),
        (100, "50-100", "100"),
        (23, "rows 2 3", None),
        (2350, "2 350 EUR", "2 350"),
        (1234.5, "12 1 234,50 EUR", "1 234,50"),
        (1234567, "1'234'567", "1'234'567"),
        (1014, "１０１４", "１０１４"),
        (10**400, "1" + "0" * 400, "1" + "0" * 400),
        (10**400, "1e400", None),
    ],
)
def test_a_number_is_found_with_its_sign_and_all_its_digits(value, text, said):
    assert [place.text for place in PageText(0, page(1, text)).places(value)] == ([] if said is None else [said])


def test_the_box_is_that_of_the_words():
    (place,) = PageText(0, BILL).places("INV-2024-0117")
    assert place.boxes == ((190, 100, 320, 130),)
    (place,) = PageText(0, BILL).places("Tail Race Lane 12 12345 Wheelbridge")
    assert place.boxes == ((340, 200, 510, 230), (100, 250, 270, 280))  # one for each line


def test_without_words_the_part_of_the_line():
    region = BILL.regions[0]
    lines = tuple(msgspec.structs.replace(line, words=()) for line in region.lines)
    bare = msgspec.structs.replace(BILL, regions=[msgspec.structs.replace(region, lines=lines)])
    (place,) = PageText(0, bare).places("INV-2024-0117")
    assert place.boxes == ((190, 100, 320, 130),)


def test_what_a_model_read_has_the_box_of_its_region():
    content = "<table><tr><td>Fee &amp; tax</td><td>12.00</td></tr></table>"
    region = msgspec.structs.replace(
        BILL.regions[0], lines=(), content=content, content_format=ContentFormat.HTML, bbox=(1, 2, 30, 40)
    )
    (place,) = PageText(0, msgspec.structs.replace(BILL, regions=[region])).places("Fee & tax")
    assert place.boxes == ((1, 2, 30, 40),)


def test_korean_words_have_endings():
    text = PageText(0, page(1, "공급자: 한지공방에서 발행 2024년 3월 5일"))
    assert text.places("한지공방")[0].text == "한지공방"
    assert text.places("2024-03-05")[0].text.startswith("2024년 3월 5")


def test_values_of_an_entry_are_near_each_other():
    rows = [(("items", 0, "name"), "Blue paper"), (("items", 0, "sum"), 7), (("items", 1, "name"), "Board")]
    rows += [(("items", 1, "price"), 7), (("items", 1, "sum"), 7)]
    places = choose_places(rows, [PageText(0, BILL)])
    rows_of = {path: round((place.middle - 115) / 50) for path, place in places.items()}
    assert rows_of == {path: 4 + path[1] for path, _ in rows}
    assert places["items", 1, "price"].boxes != places["items", 1, "sum"].boxes


def test_a_value_is_beside_its_label():
    text = PageText(0, page(1, "Net 40.00", "Tax 0.00", "Paid 40.00", "Open amount 40.00"))
    assert choose_places([(("open_amount",), 40.0)], [text])[("open_amount",)].boxes[0][1] == 250
    assert choose_places([(("paid",), 40.0)], [text])[("paid",)].boxes[0][1] == 200


def test_the_page_where_it_is():
    places = choose_places([(("total",), 8.5)], [PageText(3, page(4, "nothing")), PageText(4, page(5, "Sum 8,50"))])
    assert places[("total",)].page == 4
