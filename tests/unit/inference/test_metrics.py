"""The queue of a server, out of its metrics."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagemill.inference.models import requests_waiting

REAL = b"""# HELP vllm:num_requests_waiting Number of requests waiting to be processed.
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="glm-ocr"} 3.0
vllm:num_requests_waiting{engine="1",model_name="a } b"} 4.0
# HELP vllm:num_requests_waiting_by_reason Number of waiting requests by reason.
vllm:num_requests_waiting_by_reason{engine="0",model_name="glm-ocr",reason="capacity"} 100.0
vllm:num_requests_running{engine="0",model_name="glm-ocr"} 7.0
"""


@pytest.mark.parametrize(
    ("text", "waiting"),
    [
        (REAL, 7),
        (b"vllm:num_requests_waiting 5 1700000000", 5),
        (b'vllm:num_requests_waiting{a="b"} NaN', None),
        (b'vllm:num_requests_waiting{a="b"} -1', None),
        (b"vllm:num_requests_waiting{", None),
        (b"vllm:num_requests_waiting ", None),
        (b"up 1\n", None),
        (b"", None),
    ],
)
def test_queue(text, waiting):
    assert requests_waiting(text) == waiting


@given(st.binary(max_size=200), st.binary(max_size=50))
def test_any_bytes(before, after):
    waiting = requests_waiting(before + b"vllm:num_requests_waiting" + after)
    assert waiting is None or waiting >= 0
