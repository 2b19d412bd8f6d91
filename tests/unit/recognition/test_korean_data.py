"""Tesseract's Korean data in the wheel has the syllables of KS X 1001 and is what the script makes of it again."""

import itertools

from extend_korean_data import UNICHARSET, codes_of, extended, joined, letters_of, parts_of

from pagemill.recognition.tessdata import EMBEDDED

DATA = (EMBEDDED / "kor.traineddata").read_bytes()
KS_X_1001 = [bytes(pair).decode("euc-kr") for pair in itertools.product(range(0xB0, 0xC9), range(0xA1, 0xFF))]


def listed() -> list[str]:
    unicharset = parts_of(DATA)[UNICHARSET]
    assert unicharset is not None
    return [line.split(" ", 1)[0] for line in unicharset.decode().split("\n")[1:-1]]


def test_all_syllables_are_there_but_those_with_a_last_letter_that_the_network_lacks():
    missing = set(KS_X_1001) - set(listed())
    assert {"낡", "닭", "씻", "깎", "쉰", "춥"}.isdisjoint(missing)
    assert len(missing) == 16
    known = {letters_of(syllable)[2] for syllable in set(KS_X_1001) - missing}
    assert known.isdisjoint(letters_of(syllable)[2] for syllable in missing)


def test_each_character_has_its_codes_and_no_two_syllables_the_same():
    characters, codes = listed(), codes_of(parts_of(DATA)[UNICHARSET + 1] or b"")
    assert len(characters) == len(codes) == len(set(characters))
    syllables = [code for character, code in zip(characters, codes, strict=True) if character in KS_X_1001]
    assert len(set(syllables)) == len(syllables)


def test_the_parts_of_a_file_give_the_file_and_data_that_has_all_stays_as_it_is():
    assert joined(parts_of(DATA)) == DATA
    assert extended(DATA) == DATA
