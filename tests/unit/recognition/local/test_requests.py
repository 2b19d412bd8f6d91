"""What becomes of a server's request when the model is in this process."""

import importlib
import sys

import msgspec
import numpy as np
import pytest

from pagemill.config.model_cards import load_card
from pagemill.document.labels import Task
from pagemill.errors import MissingDependencyError, UsageError
from pagemill.recognition.local.requests import check_card, read_request
from pagemill.recognition.vlm.requests import RequestBuilder
from pagemill_bench.testing.drawn_pages import draw_region

CARDS = ["glm-ocr", "paddleocr-vl", "got-ocr2", "deepseek-ocr", "deepseek-ocr-2"]


@pytest.mark.parametrize("name", CARDS)
def test_a_request_for_a_server_is_read_back(name):
    card = load_card(name)
    check_card(card)
    crop = draw_region(1)
    builder = RequestBuilder(card, name)
    request = read_request(builder.body(builder.prepare(crop, Task.TABLE), card.sampling))
    assert request.image.shape == crop.shape
    assert np.abs(request.image.astype(int) - crop).mean() < 3  # as JPEG
    types = [part["type"] for part in request.messages[-1]["content"]]
    assert types == (["image", "text"] if card.image_first else ["text", "image"])
    assert request.messages[-1]["content"][types.index("text")]["text"] == card.prompts["table"]
    sampling = request.sampling
    assert (sampling.max_tokens, sampling.temperature) == (card.sampling.max_tokens, 0.0)
    assert sampling.repetition_penalty == card.sampling.repetition_penalty
    guard = msgspec.json.decode(msgspec.json.encode(sampling.vllm_xargs))
    assert guard == card.sampling.extra.get("vllm_xargs")


@pytest.mark.parametrize("extra", [{"frequency_penalty": 1.0}, {"vllm_xargs": {"other": 1}}])
def test_a_card_with_sampling_that_only_servers_know_is_refused(extra):
    card = load_card("glm-ocr")
    card = msgspec.structs.replace(card, sampling=msgspec.structs.replace(card.sampling, extra=extra))
    with pytest.raises(UsageError, match="sampling field") as caught:
        check_card(card)
    assert "--recognition-engine vlm" in caught.value.remedy


def test_an_image_elsewhere_is_not_fetched():
    body = {
        "messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}]}]
    }
    with pytest.raises(ValueError, match="not in the request"):
        read_request(msgspec.json.encode(body | {"max_tokens": 1}))


def test_a_missing_package_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pybase64", None)
    monkeypatch.delitem(sys.modules, "pagemill.recognition.local.requests")
    with pytest.raises(MissingDependencyError, match="pybase64") as raised:
        importlib.import_module("pagemill.recognition.local.requests")
    assert "gpu" in raised.value.remedy
