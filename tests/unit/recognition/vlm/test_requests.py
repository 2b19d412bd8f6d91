import base64
import io
import json
from itertools import pairwise

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from pagemill.config.model_cards import ImageBudget, ModelCard, Sampling, load_card
from pagemill.document.labels import Task
from pagemill.imaging.transforms import crop
from pagemill.recognition.vlm.requests import MAX_ASPECT, PreparedRegion, RequestBuilder, shrink, within_aspect

SAMPLING = Sampling()


def card(**changes: object) -> ModelCard:
    return msgspec.structs.replace(load_card("glm-ocr"), **changes)


def pixels(height: int, width: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)


def image_of(body: bytes) -> Image.Image:
    parts = json.loads(body)["messages"][-1]["content"]
    url = next(part for part in parts if part["type"] == "image_url")["image_url"]["url"]
    assert url.startswith("data:image/jpeg;base64,")
    return Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2], validate=True)))


def test_body_is_the_chat_completion_that_the_model_wants():
    builder = RequestBuilder(card(), "ocr")
    body = builder.body(builder.prepare(pixels(40, 60), Task.TABLE), card().sampling)
    request = json.loads(body)
    content = request.pop("messages")[0]["content"]
    assert [part["type"] for part in content] == ["image_url", "text"]
    assert content[1]["text"] == "Table Recognition:"
    assert request == {
        "model": "ocr",
        "temperature": 0.0,
        "max_tokens": 8192,
        "top_p": 1e-5,
        "top_k": 1,
        "repetition_penalty": 1.1,
    }
    assert image_of(body).size == (60, 40)


def test_body_with_system_message_text_first_and_hostile_names():
    odd = card(system='say "x"\n@IMAGE@', image_first=False, prompts={"text": 'read "}]} it\n'})
    builder = RequestBuilder(odd, 'mo"del')
    sampling = Sampling(extra={"vllm_xargs": {"ngram_size": 30}, "skip_special_tokens": False})
    request = json.loads(builder.body(builder.prepare(pixels(30, 30), Task.TEXT), sampling))
    assert request["model"] == 'mo"del'
    assert request["messages"][0] == {"role": "system", "content": 'say "x"\n@IMAGE@'}
    assert [part["type"] for part in request["messages"][1]["content"]] == ["text", "image_url"]
    assert request["messages"][1]["content"][0]["text"] == 'read "}]} it\n'
    assert request["vllm_xargs"] == {"ngram_size": 30}
    assert "top_p" not in request


def test_a_crop_within_the_budget_keeps_every_pixel():
    page = pixels(400, 300)
    cut = crop(page, (10.2, 20.7, 250.3, 300.1))
    builder = RequestBuilder(card(image=ImageBudget(max_pixels=10**6, quality=100)), "m")
    image = image_of(builder.body(builder.prepare(cut, Task.TEXT), SAMPLING))
    assert image.size == (241, 281)
    assert abs(np.asarray(image, dtype=float).mean() - cut.mean()) < 1


def test_a_crop_over_the_budget_is_shrunk():
    builder = RequestBuilder(card(image=ImageBudget(max_pixels=20_000)), "m")
    prepared = builder.prepare(pixels(300, 600), Task.TEXT)
    assert image_of(builder.body(prepared, SAMPLING)).size == (200, 100)


def test_retries_share_the_encoded_image():
    builder = RequestBuilder(card(), "m")
    prepared = builder.prepare(pixels(30, 40), Task.TEXT)
    bodies = [builder.body(prepared, Sampling(temperature=t)) for t in (0.0, 0.1)]
    assert all(prepared.image.encode() in body for body in bodies)
    assert [json.loads(body)["temperature"] for body in bodies] == [0.0, 0.1]


@settings(deadline=None)
@given(st.integers(1, 600), st.integers(1, 600), st.integers(1, 200_000))
def test_what_is_sent_is_within_the_budget_and_never_enlarged(height: int, width: int, budget: int):
    shrunk = shrink(np.zeros((height, width, 3), dtype=np.uint8), budget)
    assert shrunk.shape[0] * shrunk.shape[1] <= budget
    assert shrunk.shape[0] <= height
    assert shrunk.shape[1] <= width
    if height * width <= budget:
        assert shrunk.shape == (height, width, 3)
    elif min(height, width) > 50 and budget > 10_000:
        assert shrunk.shape[0] * shrunk.shape[1] > 0.85 * budget


def test_shrinking_averages_areas():
    stripes = np.zeros((100, 100, 3), dtype=np.uint8)
    stripes[:, ::2] = 200
    assert set(np.unique(shrink(stripes, 2500))) == {100}


@settings(deadline=None)
@given(st.integers(1, 30), st.integers(1, 4000), st.booleans())
def test_slivers_are_widened_with_their_edge(height: int, width: int, upright: bool):
    if upright:
        height, width = width, height
    widened = within_aspect(np.full((height, width, 3), 7, dtype=np.uint8))
    assert max(widened.shape[:2]) / min(widened.shape[:2]) < MAX_ASPECT
    assert widened.shape[0] >= height
    assert widened.shape[1] >= width
    assert (widened == 7).all()


def test_a_crop_without_pixels_is_an_error():
    with pytest.raises(ValueError, match="without pixels"):
        RequestBuilder(card(), "m").prepare(np.zeros((0, 5, 3), dtype=np.uint8), Task.TEXT)


def test_a_refused_region_is_made_smaller_until_it_is_small():
    builder = RequestBuilder(card(), "m")
    prepared = builder.prepare(pixels(1000, 2000), Task.TABLE)
    sizes = [image_of(builder.body(prepared, SAMPLING)).size]
    while (smaller := builder.smaller(prepared)) is not None:
        prepared = smaller
        assert prepared.task is Task.TABLE
        sizes.append(image_of(builder.body(prepared, SAMPLING)).size)
    areas = [width * height for width, height in sizes]
    assert all(0.45 < after / before <= 0.5 for before, after in pairwise(areas))
    assert areas[-1] < 200_000 <= areas[-2]


def test_a_task_without_a_prompt_is_read_as_text():
    builder = RequestBuilder(card(prompts={"text": "Read."}), "m")
    assert builder.prepare(pixels(30, 30), Task.FORMULA).task is Task.TEXT


@pytest.mark.parametrize("name", ["glm-ocr", "paddleocr-vl-1.5", "qwen3-vl-2b", "generic"])
def test_no_image_is_narrower_than_its_model_takes(name: str):
    builder = RequestBuilder(load_card(name), "m")
    side = load_card(name).image.min_side
    assert side >= 28
    for height, width in ((9, 200), (1, 1), (300, 12), (20, 4000), (30, 30_000)):
        prepared = builder.prepare(pixels(height, width), Task.TEXT)
        assert min(image_of(builder.body(prepared, SAMPLING)).size) >= side
        if (smaller := builder.smaller(prepared)) is not None:
            assert min(image_of(builder.body(smaller, SAMPLING)).size) >= side


def longest_answer(builder: RequestBuilder, prepared: PreparedRegion) -> int:
    return int(json.loads(builder.body(prepared, load_card("glm-ocr").sampling))["max_tokens"])


@pytest.mark.parametrize("context", [4096, 8192])
def test_an_answer_has_the_room_that_image_and_prompt_leave_in_the_context(context: int):
    builder = RequestBuilder(card(), "m", context)
    region, page = (builder.prepare(pixels(*size), Task.TEXT) for size in ((422, 812), (1600, 1600)))
    assert (region.tokens, page.tokens) == (437 + 1, 3265 + 1)
    assert longest_answer(builder, region) + region.tokens + 20 < context  # the template and the prompt
    assert longest_answer(builder, region) > context - region.tokens - 100
    assert 256 <= longest_answer(builder, page) < context - page.tokens


def test_an_answer_may_be_as_long_as_the_card_says_where_there_is_room():
    for context in (None, 16384):
        builder = RequestBuilder(card(), "m", context)
        assert longest_answer(builder, builder.prepare(pixels(422, 812), Task.TEXT)) == 8192


def test_a_request_that_was_too_long_leaves_more_room_for_image_and_prompt_each_time():
    builder = RequestBuilder(card(), "m", 8192)
    prepared = builder.prepare(pixels(422, 812), Task.TEXT)
    answers = [longest_answer(builder, prepared)]
    while (again := builder.shorter(prepared)) is not None:
        prepared = again
        answers.append(longest_answer(builder, prepared))
    left = [8192 - answer for answer in answers]
    assert left[1:3] == [2 * left[0], 4 * left[0]]
    assert answers[-1] >= 256
    assert len(answers) < 10
