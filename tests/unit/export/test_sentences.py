import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagemill.export.sentences import sentences


def found(text):
    return [text[start:end].strip() for start, end in sentences(text)]


@pytest.mark.parametrize(
    "parts",
    [
        ["The wheel turns.", "It is oak!", "Is it?", "Yes."],
        ["He said “stop.”", "It stopped (at once).", "Fin."],
        ["See Fig. 3 of Dr. A. Miller et al. in vol. 2.", "It is 3.5 kg, e.g. wet."],
        ["물레가 돕니다.", "종이를 뜬다.", "2026. 3. 2. 공고"],
        ["水车转动。", "它是橡木的！", "「止まれ。」", "止まった。"],
        ["पहिया घूमता है।", "यह ओक है।"],
        ["هل يدور؟", "نعم."],
        ["a line", "another"],
    ],
)
def test_sentences(parts):
    joined = "\n" if parts[0] == "a line" else " "
    assert found(joined.join(parts)) == parts


@given(st.text(st.sampled_from("aB1.。!? \n”")))
def test_together_they_are_the_text(text):
    assert "".join(text[start:end] for start, end in sentences(text)) == text
