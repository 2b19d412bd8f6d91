"""Display and inline formulas found by the symbols of a text layer."""

from pagemill.document.labels import Label
from pagemill.document.page import TextLine, Word
from pagemill.document.symbols import Symbol
from pagemill.imaging.page import TextLayer
from pagemill.layout.base import DetectedRegion
from pagemill.parsing.formula_zones import SOURCE, find_zones, with_zones
from pagemill.parsing.inline_formulas import find_inline

EM = 20.0
STEP = 0.5 * EM
MATH = set("xzα=<+−∈≤∑")


class Page:
    """Lines of glyphs half an em wide; variables and signs are set in a font for formulas."""

    def __init__(self):
        self.lines, self.symbols, self.rules = [], [], []

    def write(self, text, x, baseline, size=EM, joined=False):
        """One line; ``^`` raises the next glyph, ``_`` lowers it. ``joined`` gives its symbols to the last line."""
        words, start, place, shift = [], x, x, 0.0
        plain = ""
        for char in f"{text} ":
            if char in "^_":
                shift = -0.36 * size if char == "^" else 0.2 * size
                continue
            if char == " ":
                if plain:
                    words.append(Word(plain, (start, baseline - size, place, baseline + 0.3 * size)))
                place += 0.3 * size
                start, plain = place, ""
                continue
            own = 0.7 * size if shift else size
            box = (place, baseline + shift - 0.7 * own, place + 0.48 * own, baseline + shift)
            math = char in MATH
            self.symbols.append(Symbol(char, box, baseline + shift, own, "i" if math else "r", math))
            place += 0.5 * own
            plain, shift = plain + char, 0.0
        box = (x, baseline - 0.8 * size, words[-1].box[2], baseline + 0.25 * size)
        line = TextLine(
            text=" ".join(word.text for word in words), box=box, engine="text-layer", words=tuple(words), font_size=size
        )
        self.lines.append(line)
        return line

    @property
    def layer(self):
        return TextLayer(
            lines=tuple(self.lines),
            characters=len(self.symbols),
            unmapped=0,
            symbols=tuple(self.symbols),
            rules=tuple(self.rules),
        )

    def zones(self):
        return find_zones(self.layer, self.lines)

    def inline(self):
        found = find_inline(self.layer, self.lines, ())
        return [found.told(line.text)[0] for line in found.lines(self.lines)]


def page_with_display():
    page = Page()
    page.write("the mill turns slowly in spring when water is high and", 100, 100)
    page.write("x+1", 300, 160)
    page.write("y", 312, 190)
    page.rules.append((298.0, 169.0, 334.0, 170.0))
    page.write("= n^2", 345, 177)
    page.write("(1)", 700, 177)
    page.write("paper dries on long racks under the roof of the mill", 100, 240)
    return page


def test_a_display_formula_is_put_together_from_its_lines_and_has_its_number():
    (zone,) = page_with_display().zones()
    assert zone.latex == r"\frac{x + 1}{y} = n^{2}"
    assert zone.number is not None and zone.number.text == "(1)"
    assert len(zone.lines) == 3


def test_right_to_left_letters_are_no_variables():
    page = Page()
    page.write("א+ב=3", x=200, baseline=100)
    assert page.zones() == []


def test_it_takes_the_place_of_what_layout_says_there():
    page = page_with_display()
    detected = [
        DetectedRegion(box=(90, 80, 650, 260), label=Label.TEXT, score=0.9, source="model"),
        DetectedRegion(box=(290, 140, 420, 200), label=Label.DISPLAY_FORMULA, score=0.9, source="model"),
        DetectedRegion(box=(299, 145, 410, 195), label=Label.PARAGRAPH_TITLE, score=0.9, source="model"),
    ]
    regions, latex = with_zones(detected, page.zones())
    assert [region.label for region in regions] == [Label.TEXT, Label.DISPLAY_FORMULA, Label.FORMULA_NUMBER]
    assert latex == {1: r"\frac{x + 1}{y} = n^{2}"}
    assert regions[1].source == SOURCE


def test_a_formula_in_a_table_or_picture_stays_part_of_it():
    detected = [DetectedRegion(box=(0, 0, 800, 800), label=Label.TABLE, score=0.9, source="model")]
    assert with_zones(detected, page_with_display().zones()) == (detected, {})


def test_lines_of_words_are_no_formulas():
    page = Page()
    page.write("the mill turns slowly x = 3 in spring when water is high", 100, 100)
    page.write("* 42 * 17 *", 100, 160)
    assert page.zones() == []


def test_a_line_that_begins_with_a_formula_is_none_where_words_have_no_spaces():
    page = Page()
    page.write("x ≤ n+1 地區圖書館更換了老化的電纜和損壞", 100, 100)
    assert page.zones() == []


def test_a_formula_is_one_word_of_its_line():
    page = Page()
    line = page.write("when x_n ≤ 3, water", 100, 100)
    (marked,) = find_inline(page.layer, page.lines, ()).lines(page.lines)
    assert [word.box[::2] for word in marked.words][1] == (line.words[1].box[0], line.words[3].box[2])
    assert " ".join(word.text for word in marked.words) == marked.text


def test_a_line_that_ends_a_paragraph_is_none():
    page = Page()
    page.write("the mill turns slowly in spring when water is high and", 100, 100)
    page.write("x ≤ n+1", 100, 126)
    assert page.zones() == []


def test_formulas_between_words_are_written_out_and_punctuation_stays_outside():
    page = Page()
    page.write("water is high (when x_n ≤ 3), and α+z^2. stays", 100, 100)
    assert page.inline() == ["water is high (when $x_{n} \\leq 3$), and $\\alpha + z^{2}$. stays"]


def test_a_variable_on_its_own_stays_a_letter():
    page = Page()
    page.write("the mill has z wheels", 100, 100)
    assert page.inline() == ["the mill has z wheels"]


def test_a_price_on_the_line_keeps_dollars_for_money():
    page = Page()
    page.write("it costs $5 where x_n ≤ 3", 100, 100)
    assert page.inline() == ["it costs $5 where xn ≤ 3"]
