"""Chat completions from untrusted JSON."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagemill.inference.chat import decode_completion


@given(
    st.recursive(
        st.none() | st.integers() | st.text() | st.floats(),
        lambda s: st.lists(s)
        | st.dictionaries(
            st.text() | st.sampled_from(["choices", "message", "content", "usage", "completion_tokens"]), s
        ),
        max_leaves=20,
    )
)
def test_any_json_is_an_answer_or_a_value_error(value):
    try:
        answer, tokens = decode_completion(msgspec.json.encode(value))
    except ValueError:
        return
    assert isinstance(answer.text, str)
    assert tokens >= 0


USAGES = ["null", "7", "[]", '"many"', '{"completion_tokens":7.0}', '{"prompt_tokens":"5"}']


@pytest.mark.parametrize("usage", [*USAGES, '{"completion_tokens":99999999999999}'])
def test_no_answer_is_lost_for_the_numbers_beside_it(usage):
    reply = f'{{"choices":[{{"message":{{"content":"words"}}}}],"usage":{usage}}}'
    answer, tokens = decode_completion(reply.encode())
    assert (answer.text, answer.completion_tokens) == ("words", None)
    assert tokens == 2
