"""Program listings."""

from pagemill.document.labels import Label
from pagemill.document.page import TextLine, Word
from pagemill.layout.base import DetectedRegion
from pagemill.parsing.lines import lines_of_regions, rows_of
from pagemill.parsing.listings import code_runs, listing_text, mark_listings
from pagemill.parsing.lists import is_bulleted

WIDE = dict.fromkeys("mwMW", 14.0) | dict.fromkeys("iljtf.,'", 5.0)


def line(content, x, y, *, fixed):
    """A line of the text layer with its words; proportional letters are wide and narrow."""
    words, place = [], x
    for word in content.split(" "):
        width = sum(10.0 if fixed else WIDE.get(char, 9.0) for char in word)
        words.append(Word(word, (place, y, place + width, y + 20)))
        place += width + 10.0
    return TextLine(text=content, box=(x, y, place - 10.0, y + 20), words=tuple(words), font_size=18.0)


def region(lines, label=Label.TEXT):
    boxes = [each.box for each in lines]
    box = (min(b[0] for b in boxes), min(b[1] for b in boxes), max(b[2] for b in boxes), max(b[3] for b in boxes))
    return DetectedRegion(box=box, label=label, score=0.9, source="model")


PROSE = [
    line("The mill stands where the little river falls into the meadow", 100, 100, fixed=False),
    line("and its wheel is turned by whatever water the summer leaves", 100, 130, fixed=False),
]
CODE = [
    line("while True:", 100, 200, fixed=True),
    line("stock = measure(vat)", 140, 230, fixed=True),
    line("if stock < limit:", 140, 260, fixed=True),
    line("return", 180, 290, fixed=True),
]


def labels(*groups, found=None):
    regions = [region(group) for group in groups] if found is None else found
    return [
        each.label
        for each in mark_listings(regions, lines_of_regions(regions, [each for group in groups for each in group]))
    ]


def test_fixed_width_letters_among_print_are_a_listing():
    assert labels(PROSE, CODE) == [Label.TEXT, Label.ALGORITHM]


def test_a_typewritten_page_is_no_listing():
    letter = [line("Dear sirs we have received your letter", 100, 100 + 30 * i, fixed=True) for i in range(8)]
    assert labels(letter) == [Label.TEXT]


def test_a_page_of_nothing_but_code_is_a_listing():
    assert labels(CODE) == [Label.ALGORITHM]


def test_a_listing_taken_for_a_table_and_its_last_short_line():
    rest = [line("end;", 100, 320, fixed=True)]
    found = [region(PROSE), region(CODE, Label.TABLE), region(rest)]
    assert labels(PROSE, CODE, rest, found=found) == [Label.TEXT, Label.ALGORITHM, Label.ALGORITHM]


def test_addresses_are_no_listings():
    notes = [line("1 http://www.idtheftcenter.org", 100, 900, fixed=True),
             line("2 http://www.ponemon.org/", 100, 930, fixed=True)]  # fmt: skip
    assert labels(PROSE, notes) == [Label.TEXT, Label.TEXT]


def test_indents_and_empty_lines():
    later = line("print(stock)", 100, 380, fixed=True)
    assert listing_text(rows_of([*CODE, later])) == (
        "while True:\n    stock = measure(vat)\n    if stock < limit:\n        return\n\nprint(stock)"
    )


def test_bullets_and_texts_are_a_list_and_no_table():
    pieces = [piece for y in (100, 130, 160) for piece in (
        line("\u25ba", 100, y, fixed=False), line("a thing to know", 140, y, fixed=False))]  # fmt: skip
    assert is_bulleted(rows_of(pieces))
    cells = [piece for y in (100, 130, 160) for piece in (
        line("wheel", 100, y, fixed=False), line("a thing to know", 240, y, fixed=False))]  # fmt: skip
    assert not is_bulleted(rows_of(cells))


def test_text_of_another_script_with_an_address_is_no_listing():
    address = [
        line("발행일 2020년 4월 2일", 100, 200, fixed=False),
        line("발행인 김하중 국회입법조사처장", 100, 230, fixed=False),
        line("nars.go.kr/report", 100, 260, fixed=True),
    ]
    assert labels(PROSE, address) == [Label.TEXT, Label.TEXT]


def test_a_table_of_figures_is_no_listing():
    rows = [line(f"{1234 + i} {5678 - i} {20400 + i}", 100, 200 + 30 * i, fixed=True) for i in range(5)]
    regions = [region(PROSE), region(rows, Label.TABLE)]
    assert labels(PROSE, rows, found=regions) == [Label.TEXT, Label.TABLE]


def test_the_same_few_words_in_every_row_of_a_table_are_no_listing():
    rows = [line(f"{i} Widget item{i:02}", 100, 200 + 30 * i, fixed=False) for i in range(8)]  # as wide by chance
    assert labels(PROSE, rows) == [Label.TEXT, Label.TEXT]


def test_code_inside_running_text():
    texts = ["This bean has an element of its own:", "<bean>", "<name>Address</name>", "<table>", "</bean>", "The end."]
    rows = rows_of([line(each, 100, 100 + 30 * i, fixed=False) for i, each in enumerate(texts)])
    assert code_runs(rows) == [(1, 5)]
    statements = ["for (i = 0; i < n; i++) {", "a[i] = b[i] + c[i];", "}"]
    assert code_runs(rows_of([line(each, 100, 100 + 30 * i, fixed=False) for i, each in enumerate(statements)]))


def test_clauses_that_end_with_semicolons_are_no_code():
    clauses = ["the flow in the head race;", "the number of beaters in gear;", "the air in the loft;"]
    assert not code_runs(rows_of([line(each, 100, 100 + 30 * i, fixed=False) for i, each in enumerate(clauses)]))
