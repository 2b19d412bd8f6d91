"""The API of GLM-OCR's server."""

import base64
from typing import Any

import pytest
from rest_world import World, animation, image, rows

from pagemill.rest import glmocr


def uri(shade: int) -> str:
    return f"data:image/png;base64,{base64.b64encode(image(shade)).decode()}"


async def test_a_file_in_another_field_is_refused(world: World) -> None:
    sent = [("files", ("a.png", image(1))), ("img", ("b.png", image(2)))]
    answer = await world.client.post("/glmocr/parse", files=sent)
    assert answer.status_code == 422 and "'img'" in answer.json()["error"]


async def test_one_image_and_several(world: World) -> None:
    one = (await world.client.post("/glmocr/parse", json={"images": [uri(7)]})).json()
    assert one["markdown_result"] == "shade 7"
    ((region,),) = one["json_result"]
    assert (region["index"], region["label"], region["content"]) == (0, "text", "shade 7")
    assert len(region["bbox_2d"]) == 4 and all(0 <= side <= 1000 for side in region["bbox_2d"])
    two = (await world.client.post("/glmocr/parse", json={"images": [uri(1), uri(2)]})).json()
    assert two["markdown_result"] == "shade 1\n\n---\n\nshade 2"
    assert [[[region["content"] for region in page] for page in unit] for unit in two["json_result"]] == [
        [["shade 1"]],
        [["shade 2"]],
    ]


async def test_files_of_a_form(world: World) -> None:
    files = [("files", ("a.png", image(5)))]
    assert (await world.client.post("/glmocr/parse", files=files)).json()["markdown_result"] == "shade 5"


async def test_rows_of_a_dataset_whose_ids_name_documents(world: World) -> None:
    answer = await world.client.post("/glmocr/parse", files=[("files", ("rows.parquet", rows("a_1", "b_1")))])
    assert answer.json()["markdown_result"] == "shade 1\n\nshade 2"


async def test_a_page_that_is_incomplete_is_marked(world: World) -> None:
    answer = await world.client.post("/glmocr/parse", files=[("files", ("moving.webp", animation()))])
    assert answer.headers["pagemill-incomplete"] == "pages are incomplete (frames)"


@pytest.mark.parametrize(
    ("request_", "status", "said"),
    [
        ({"json": {"images": []}}, 400, "no files"),
        ({"json": {"images": ["file:///etc/passwd"]}}, 422, "neither a data URI"),
        ({"json": {"images": ["/etc/passwd"]}}, 422, "neither a data URI"),
        ({"json": {"images": ["http://127.0.0.1/a.png"]}}, 403, "no URLs"),
        ({"json": {"images": ["data:image/png;base64,a"]}}, 422, "base64"),
        ({"json": {"images": ["data:image/png;base64,iV*BO*Rw*0K"]}}, 422, "base64"),
        ({"json": {"images": 3}}, 422, "not a JSON object"),
        ({"json": {"images": [f"data:;base64,{base64.b64encode(b'nothing').decode()}"]}}, 422, "image-1"),
    ],
)
async def test_errors_are_texts(world: World, request_: Any, status: int, said: str) -> None:
    """Their own server answers some of these with an empty result."""
    answer = await world.client.post("/glmocr/parse", **request_)
    assert answer.status_code == status, answer.text
    assert said in answer.json()["error"]


async def test_an_answer_is_bounded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(glmocr, "MAX_PAGES", 1)
    answer = await world.client.post("/glmocr/parse", json={"images": [uri(1), uri(2)]})
    assert answer.status_code == 422 and "/v1/jobs/" in answer.json()["error"]
