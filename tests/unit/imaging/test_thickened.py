"""Letters of fonts without a name: which of them are thickened."""

from pagemill.imaging.thickened import thickened

PLAIN, THICK, THICK_TOO, NAMED = 11, 12, 13, 0


def found(text: str, fonts: list[int], grown: float = 0.03) -> set[int]:
    """The places of the letters that are thickened, if each letter is a text object of its own."""

    def box_of(index: int) -> tuple[float, float, float, float]:
        side = 10 * (0.8 + (grown if fonts[index] in (THICK, THICK_TOO) else 0.0))
        return 0.0, 0.0, side, side

    places = range(len(text))
    return thickened([ord(char) for char in text], list(places), fonts, [10.0] * len(text), box_of)


def test_a_letter_in_two_forms_tells_its_font():
    # The second letter is in one form only, but in the font of the first one.
    assert found("\u6c34\u706b \u6c34\u6728", [THICK, THICK, NAMED, PLAIN, PLAIN]) == {0, 1}


def test_letters_of_unknown_fonts_are_as_the_nearest_known_ones():
    assert found("\u6c34\u706b\u571f\u6c34\u6728", [THICK, THICK_TOO, PLAIN, PLAIN, PLAIN]) == {0, 1}
    assert found("\u6c34\u706b, \u571f\u6c34", [THICK, NAMED, NAMED, NAMED, THICK_TOO, PLAIN]) == {0}


def test_one_form_and_forms_of_other_typefaces_tell_nothing():
    assert not found("\u6c34\u706b\u6c34", [THICK, THICK, THICK])
    assert not found("\u6c34\u706b\u6c34", [THICK, THICK, PLAIN], grown=0.2)
    assert not found("aba", [THICK, THICK, PLAIN])
