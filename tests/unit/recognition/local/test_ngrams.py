import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagemill.recognition.local.ngrams import NGramHistory

SEQUENCES = st.lists(st.integers(0, 3), max_size=60)


def reference(tokens, size, window, allowed=()):
    """As vLLM's processor for DeepSeek-OCR defines it, in plain loops."""
    prefix = tokens[len(tokens) - size + 1 :] if size > 1 else []
    starts = range(max(0, len(tokens) - window), len(tokens) - size + 1)
    found = {tokens[i + size - 1] for i in starts if tokens[i : i + size - 1] == prefix}
    return found - set(allowed) if len(tokens) >= size else set()


@given(SEQUENCES, st.integers(1, 6), st.integers(1, 40), st.sets(st.integers(0, 3), max_size=2))
def test_bans_what_the_reference_bans_after_every_token(tokens, size, window, allowed):
    history = NGramHistory(size, window, allowed)
    for end in range(len(tokens)):
        history.extend(tokens[end : end + 1])
        assert set(history.banned()) == reference(tokens[: end + 1], size, window, allowed)


@given(SEQUENCES, st.integers(1, 6), st.integers(1, 40))
def test_tokens_may_come_in_any_number_at_once(tokens, size, window):
    history = NGramHistory(size, window)
    history.extend(tokens)
    assert set(history.banned()) == reference(tokens, size, window)


def test_keeps_no_more_than_the_window():
    history = NGramHistory(3, 50)
    history.extend(range(10_000))
    assert len(history._starts) == len(history._followers) == 48  # starts from which three tokens have come


@pytest.mark.parametrize(("size", "window"), [(0, 10), (2, 0)])
def test_sizes_are_positive(size, window):
    with pytest.raises(ValueError, match="n-grams of"):
        NGramHistory(size, window)
