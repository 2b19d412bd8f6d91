import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagemill.document.identity import PageKey

digests = st.text("0123456789abcdef", min_size=64, max_size=64)


@given(digests, st.integers(0, 10**12 - 1), st.integers(1, 10**9 - 1))
def test_a_key_survives_as_text(digest: str, page: int, copy: int):
    key = PageKey(digest, page, copy)
    assert PageKey.parse(str(key)) == key


def test_the_first_copy_is_not_numbered():
    assert str(PageKey("0" * 64, 3)) == "0" * 64 + "/3"
    assert str(PageKey("0" * 64, 3, 2)) == "0" * 64 + "/3+2"


@pytest.mark.parametrize("text", ["", "x/1", "0" * 63 + "/1", "0" * 64, "0" * 64 + "/-1", "0" * 64 + "/1+", "/1\n"])
def test_other_texts_are_no_keys(text: str):
    with pytest.raises(ValueError, match="no page key"):
        PageKey.parse(text)
