"""docling-serve's API, with the requests of its clients."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rest_world import World, animation, archive, image, rest_world, rows
from starlette.testclient import TestClient
from starlette.websockets import WebSocket, WebSocketDisconnect

from pagemill.config.machine import RuntimeSettings
from pagemill.errors import UsageError
from pagemill.rest import docling, sending
from pagemill.rest.app import create_app
from pagemill.rest.docling_options import conversion
from pagemill.rest.settings import ServeSettings


def loaded_document(content: Any) -> Any:
    from docling_core.types.doc.document import DoclingDocument  # on use, as it takes a second

    return DoclingDocument.model_validate(content)


def files(*shades: int) -> list[Any]:
    return [("files", (f"page {number}.png", image(shade))) for number, shade in enumerate(shades, 1)]


def sources(*contents: bytes) -> list[dict[str, str]]:
    return [
        {"kind": "file", "base64_string": base64.b64encode(each).decode(), "filename": f"{number}.png"}
        for number, each in enumerate(contents, 1)
    ]


async def test_a_file_in_all_formats(world: World) -> None:
    formats = ["md", "json", "html", "text", "doctags"]
    answer = await world.client.post("/v1/convert/file", files=files(7), data={"to_formats": formats})
    assert answer.status_code == 200, answer.text
    result = answer.json()
    document = result["document"]
    assert (result["status"], document["filename"]) == ("success", "page 1.png")
    assert document["md_content"] == "shade 7\n"
    assert document["text_content"] == "shade 7\n"
    assert "<p>shade 7</p>" in document["html_content"]
    assert document["doctags_content"].startswith("<doctag>") and ">shade 7</text>" in document["doctags_content"]
    loaded = loaded_document(document["json_content"])
    assert loaded.name == "page 1" and [text.text for text in loaded.texts] == ["shade 7"]
    assert result["errors"] == []
    assert result["processing_time"] >= 0 and result["timings"]["pipeline_total"]["count"] == 1


@pytest.mark.parametrize("chunker", ["hybrid", "hierarchical"])
async def test_files_are_cut_into_chunks(world: World, chunker: str) -> None:
    # As docling's client sends it: options of the conversion and of the chunker by their prefixes.
    form = {"convert_do_ocr": "true", "chunking_max_tokens": "64", "chunking_include_raw_text": "true"}
    form |= {"include_converted_doc": "false", "target_type": "inbody", "chunking_merge_peers": "true"}
    answer = await world.client.post(f"/v1/chunk/{chunker}/file", files=files(3, 4), data=form)
    assert answer.status_code == 200, answer.text
    result = answer.json()
    said = [(each["filename"], each["chunk_index"], each["text"], each["page_numbers"]) for each in result["chunks"]]
    assert said == [("page 1.png", 0, "shade 3", [1]), ("page 2.png", 0, "shade 4", [1])]
    assert result["chunks"][0]["raw_text"] == "shade 3" and result["chunks"][0]["num_tokens"] > 0
    assert [each["status"] for each in result["documents"]] == ["success", "success"]
    assert [each["content"]["json_content"] for each in result["documents"]] == [None, None]
    warned = ["hybrid chunker" in each["error_message"] for each in result["documents"][0]["errors"]]
    assert warned == ([True] if chunker == "hierarchical" else [])


async def test_sources_are_cut_into_chunks_later(world: World) -> None:
    request = {"sources": sources(image(9), b"no document"), "include_converted_doc": True}
    request |= {"convert_options": {"page_range": [1, 2]}, "chunking_options": {"chunker": "hybrid", "max_tokens": 40}}
    task = (await world.client.post("/v1/chunk/hybrid/source/async", json=request)).json()
    assert task["task_type"] == "chunk"
    await world.client.get(f"/v1/status/poll/{task['task_id']}?wait=30")
    result = (await world.client.get(f"/v1/result/{task['task_id']}")).json()
    assert [chunk["text"] for chunk in result["chunks"]] == ["shade 9"]
    assert [each["status"] for each in result["documents"]] == ["success", "failure"]
    loaded = loaded_document(result["documents"][0]["content"]["json_content"])
    assert [text.text for text in loaded.texts] == ["shade 9"]


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"target_type": "zip"}, "for chunks"),
        ({"chunking_max_tokens": "1"}, "max_tokens"),
        ({"chunking_max_tokens": "x"}, "'x'"),
    ],
)
async def test_wrong_requests_for_chunks_are_refused(world: World, form: dict[str, str], said: str) -> None:
    answer = await world.client.post("/v1/chunk/hybrid/file", files=files(1), data=form)
    assert answer.status_code == 422 and said in answer.json()["detail"]


async def test_what_the_server_offers(world: World) -> None:
    offer = (await world.client.get("/v1/capabilities")).json()
    assert offer["sources"] == ["file"] and offer["targets"] == {"allowed": ["inbody", "zip"], "default": "inbody"}
    assert {"md", "doctags"} <= set(offer["output_formats"]) and offer["limits"]["max_file_size"] > 0


async def test_the_request_of_open_webui(world: World) -> None:
    """Its engine "Docling": one file under a path of its own, parameters of the settings, the text from the answer."""
    upload = ("/app/backend/data/uploads/7f3e_report.png", image(7), "image/png")
    form = {"image_export_mode": "placeholder", "do_ocr": "True", "ocr_lang": ["en"], "pipeline": "standard"}
    answer = await world.client.post(
        "/v1/convert/file", files={"files": upload}, data=form, headers={"X-Api-Key": "unused"}
    )
    assert (answer.status_code, answer.json()["document"]["md_content"]) == (200, "shade 7\n")
    refused = await world.client.post("/v1/convert/file", files={"files": upload}, data={"do_ocr": "perhaps"})
    assert refused.status_code == 422 and "do_ocr" in refused.json()["detail"]  # which it shows


async def test_the_requests_of_n8n(world: World) -> None:
    """Its node "HTTP Request": a binary field of the form, then the address of the task until that has ended."""
    assert (await world.client.get("/health")).json() == {"status": "ok"}
    upload = {"files": ("scan.png", image(8), "image/png")}
    task = (await world.client.post("/v1/convert/file/async", files=upload, data={"to_formats": "md"})).json()
    assert task["task_type"] == "convert" and task["task_status"] in ("pending", "started")
    ended = (await world.client.get(f"/v1/status/poll/{task['task_id']}", params={"wait": "30"})).json()
    assert ended["task_status"] == "success"
    result = (await world.client.get(f"/v1/result/{task['task_id']}")).json()
    assert result["document"]["md_content"] == "shade 8\n"


async def test_a_source_in_base64(world: World) -> None:
    source = {"kind": "file", "base64_string": base64.encodebytes(image(9)).decode()}  # in lines, and without a name
    request = {"sources": [source], "options": {"to_formats": ["text"]}}
    answer = await world.client.post("/v1/convert/source", json=request)
    assert answer.json()["document"] | {"filename": ""} == {
        "filename": "",
        "md_content": None,
        "json_content": None,
        "html_content": None,
        "text_content": "shade 9\n",
        "doctags_content": None,
    }


async def test_several_documents_and_the_zip_target_make_an_archive(world: World) -> None:
    several = await world.client.post("/v1/convert/file", files=files(1, 2), data={"to_formats": "md,text"})
    one = await world.client.post(
        "/v1/convert/source",
        json={"sources": sources(image(3)), "target": {"kind": "zip"}, "options": {"to_formats": ["json"]}},
    )
    assert [answer.headers["content-type"] for answer in (several, one)] == ["application/zip"] * 2
    assert archive(several).namelist() == ["page 1.md", "page 1.txt", "page 2.md", "page 2.txt", "status.json"]
    assert archive(one).namelist() == ["1.json", "status.json"]


async def test_a_document_that_cannot_be_read(world: World) -> None:
    broken = [("files", ("bad.png", b"no picture"))]
    result = (await world.client.post("/v1/convert/file", files=broken)).json()
    assert result["status"] == "failure" and result["document"]["md_content"] is None
    assert "bad.png" in result["errors"][0]["error_message"]
    task = (await world.client.post("/v1/convert/file/async", files=broken)).json()["task_id"]
    status = (await world.client.get(f"/v1/status/poll/{task}?wait=30")).json()
    assert status["task_status"] == "failure" and status["failure"]["phase"] == "execution"
    result = (await world.client.get(f"/v1/result/{task}")).json()
    assert (result["kind"], result["failure"]["message"]) == ("TaskFailureResult", status["error_message"])


async def test_a_page_that_is_incomplete_is_no_success(world: World) -> None:
    sent = [("files", ("moving.webp", animation()))]
    result = (await world.client.post("/v1/convert/file", files=sent)).json()
    assert (result["status"], result["document"]["md_content"]) == ("partial_success", "shade 7\n")
    assert ["2 frames" in each["error_message"] for each in result["errors"]] == [True]


async def test_rows_of_a_dataset_whose_ids_name_documents(world: World) -> None:
    sent = [("files", ("rows.parquet", rows("a_1", "b_1")))]
    result = (await world.client.post("/v1/convert/file", files=sent, data={"to_formats": ["md", "json"]})).json()
    assert (result["status"], result["document"]["md_content"]) == ("success", "shade 1\n\nshade 2\n")
    loaded = loaded_document(result["document"]["json_content"])
    assert [text.text for text in loaded.texts] == ["shade 1", "shade 2"]


async def test_a_document_does_not_take_the_place_of_the_status(world: World) -> None:
    sent = [("files", ("status.png", image(1)))]
    answer = await world.client.post("/v1/convert/file", files=sent, data={"target_type": "zip", "to_formats": "json"})
    assert archive(answer).namelist() == ["status-0001.json", "status.json"]


async def test_two_documents_of_one_name_are_two_entries(world: World) -> None:
    sent = [("files", ("same.png", image(1))), ("files", ("same.png", b"no picture"))]
    answer = await world.client.post("/v1/convert/file", files=sent)
    status = json.loads(archive(answer).read("status.json"))
    states = {name: each["status"] for name, each in status.items()}
    assert states == {"same.png": "success", "same-0002.png": "failure"}


@pytest.mark.parametrize(
    ("path", "request_", "status", "detail"),
    [
        ("/v1/convert/source", {"json": {"sources": []}}, 400, "no files"),
        ("/v1/convert/source", {"json": {}}, 422, "sources"),
        ("/v1/convert/source", {"content": b"{"}, 422, "not a request"),
        ("/v1/convert/source", {"json": {"sources": [{"kind": "http", "url": "http://a/b.pdf"}]}}, 403, "no URLs"),
        ("/v1/convert/source", {"json": {"sources": [{"kind": "s3"}]}}, 422, "'s3' is not supported"),
        ("/v1/convert/source", {"json": {"sources": sources(b"x"), "target": {"kind": "put"}}}, 422, "target 'put'"),
        ("/v1/convert/source", {"json": {"sources": [{"kind": "file", "base64_string": "eA~~=="}]}}, 422, "base64"),
        ("/v1/convert/source", {"json": {"sources": [{"kind": "file", "base64_string": "eA==éé"}]}}, 422, "base64"),
        ("/v1/convert/source", {"json": {"sources": sources(b"x"), "callbacks": [{}]}}, 422, "callbacks"),
        ("/v1/convert/file", {"files": files(1), "data": {"target_type": "presigned_url"}}, 422, "artifact storage"),
        ("/v1/convert/file", {"files": files(1), "data": {"ocr_lang": "xx"}}, 422, "xx"),
        ("/v1/convert/file", {"files": files(1), "data": {"page_range": "[3, 1]"}}, 422, "page_range"),
        ("/v1/convert/file", {"files": files(1), "data": {"image_export_mode": "none"}}, 422, "image_export_mode"),
        ("/v1/convert/file", {"files": files(1), "data": {"pipeline": "vlm"}}, 422, "recognition_engine"),
        ("/v1/convert/file", {"content": b"x"}, 400, "multipart"),
        ("/v1/convert/file", {"files": [*files(1), ("file", ("b.png", image()))]}, 422, "'file'"),
        ("/v1/convert/source", {"json": {"sources": sources(b"x"), "option": {}}}, 422, "option"),
    ],
)
async def test_what_is_refused(world: World, path: str, request_: Any, status: int, detail: str) -> None:
    """With ``detail``, as docling-serve says it; nothing is left of the request."""
    answer = await world.client.post(path, **request_)
    assert answer.status_code == status, answer.text
    assert detail in answer.json()["detail"]
    assert not list(world.server.settings.jobs_folder.iterdir())


async def test_tasks_that_are_not_there(world: World) -> None:
    for path in ("/v1/status/poll/x", "/v1/status/poll/x?wait=1", "/v1/result/x"):
        answer = await world.client.get(path)
        assert (answer.status_code, answer.json()["detail"]) == (404, "Task not found.")


async def test_a_result_that_is_not_there_yet(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "SYNC_WAIT_S", 0.0)
    late = await world.client.post("/v1/convert/file", files=files(1))
    assert late.status_code == 504 and "/v1/result/" in late.json()["detail"]
    id = (await world.client.post("/v1/convert/file/async", files=files(1))).json()["task_id"]
    monkeypatch.setattr(world.server, "results", lambda *_: _unfinished(world, id))
    answer = await world.client.get(f"/v1/result/{id}")
    assert answer.status_code == 404 and answer.json()["detail"].startswith("Task result not found")


async def _unfinished(world: World, id: str) -> Any:
    results = await type(world.server).results(world.server, id, "")
    return type(results)(docling.msgspec.structs.replace(results.row, finished=None), results.documents, results.folder)


async def test_results_are_as_requested_after_a_restart(tmp_path: Path) -> None:
    async with rest_world(tmp_path) as world:
        answer = await world.client.post("/v1/convert/file/async", files=files(7), data={"to_formats": "text"})
        id = answer.json()["task_id"]
        await world.client.get(f"/v1/status/poll/{id}?wait=30")
    async with rest_world(tmp_path) as world:
        document = (await world.client.get(f"/v1/result/{id}")).json()["document"]
    assert (document["md_content"], document["text_content"]) == (None, "shade 7\n")


async def test_health_and_keys(tmp_path: Path) -> None:
    key = "a key of the test"
    async with rest_world(tmp_path, api_keys=(key.replace(" ", "-"),)) as world:
        assert (await world.client.get("/health")).json() == {"status": "ok"}
        refused = await world.client.post("/v1/convert/file", files=files(1))
        assert refused.status_code == 401 and "API key" in refused.json()["detail"]
        headers = {"X-Api-Key": key.replace(" ", "-")}
        assert (await world.client.post("/v1/convert/file", files=files(1), headers=headers)).status_code == 200


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    """A client that can open websockets."""
    app = create_app(ServeSettings(data=tmp_path, runtime=RuntimeSettings(threads=1, decoders=1)))
    with TestClient(app, base_url="http://127.0.0.1", headers={"host": "127.0.0.1"}) as made:
        yield made


def test_the_state_of_a_task_over_a_websocket(client: TestClient) -> None:
    id = client.post("/v1/convert/file/async", files=files(7)).json()["task_id"]
    with client.websocket_connect(f"/v1/status/ws/{id}") as socket:
        first = socket.receive_json()
        assert first["message"] == "connection" and first["task"]["task_id"] == id
        states = []
        while not states or states[-1] not in ("success", "failure"):
            told = socket.receive_json()
            assert told["message"] == "update"
            states.append(told["task"]["task_status"])
            socket.send_text("next")
        assert states[-1] == "success"
    with client.websocket_connect("/v1/status/ws/x") as socket:
        assert socket.receive_json()["error"] == "Task not found."


def test_a_task_that_is_removed_while_it_is_watched(client: TestClient) -> None:
    server = client.app.state.server
    server.runner.add = lambda row: None
    id = client.post("/v1/convert/file/async", files=files(7)).json()["task_id"]

    async def remove() -> None:
        row = server.jobs.get(id)
        server.jobs.end(row, "failed", pages=1, ended=0, failed=0, size=0, error=None, document_pages={})
        await server.remove(id)

    with client.websocket_connect(f"/v1/status/ws/{id}") as socket:
        assert [socket.receive_json()["message"] for _ in range(2)] == ["connection", "update"]
        client.portal.call(remove)
        assert socket.receive_json() == {"message": "error", "task": None, "error": "Task not found."}


@pytest.mark.timeout(60)  # a client of a test waits without end for an answer
def test_a_defect_is_not_taken_for_a_client_that_left(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    async def explode(*_: object) -> None:
        raise RuntimeError("a defect")

    monkeypatch.setattr("pagemill.rest.docling._status", explode)
    with (
        pytest.raises(RuntimeError, match="a defect"),
        client.websocket_connect("/v1/status/ws/x") as socket,
    ):
        socket.receive_json()


async def test_a_connection_that_the_server_has_closed_is_a_client_that_left() -> None:
    async def receive() -> dict[str, str]:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        if message["type"] != "websocket.accept":
            raise RuntimeError("Unexpected ASGI message 'websocket.send'")

    socket = WebSocket({"type": "websocket"}, receive, send)
    await socket.accept()
    with pytest.raises(WebSocketDisconnect):
        await docling._send(socket, "update")


class TestOptions:
    @pytest.mark.parametrize(
        ("given", "expected"),
        [
            ({"ocr_lang": ["kor", "en-GB"]}, {"languages": ["ko", "en"]}),
            ({"ocr_lang": "ko,en"}, {"languages": ["ko", "en"]}),
            ({"ocr_lang": '["de"]'}, {"languages": ["de"]}),
            ({"ocr_lang": []}, {}),
            ({"ocr_lang": ["mul"]}, {}),
            ({"force_ocr": "true"}, {"text_layer": "never"}),
            ({"force_ocr": False}, {}),
            ({"page_range": [2, 4]}, {"pages": "2-4"}),
            ({"page_range": ["2", "9223372036854775807"]}, {"pages": "2-"}),
            ({"page_range": [1, 9223372036854775807]}, {}),
            ({"pipeline": "standard"}, {}),
            ({"pipeline": "vlm"}, {"recognition_engine": "vlm"}),
        ],
    )
    def test_what_they_become(self, given: dict[str, Any], expected: dict[str, Any]) -> None:
        made = conversion(given)
        assert (made.options, made.warnings) == (expected, [])

    @pytest.mark.parametrize("given", [{"do_ocr": False}, {"pdf_backend": "x"}, {"images_scale": 3}, {"new": 1}])
    def test_what_has_no_effect_is_reported(self, given: dict[str, Any]) -> None:
        (warning,) = conversion(given).warnings
        assert next(iter(given)) in warning

    @pytest.mark.parametrize(
        "given", [{"do_table_structure": "true"}, {"ocr_engine": "auto"}, {"abort_on_error": False}]
    )
    def test_what_is_done_anyway_needs_no_warning(self, given: dict[str, Any]) -> None:
        assert conversion(given).warnings == []

    @pytest.mark.parametrize(
        "given",
        [
            {"force_ocr": "maybe"},
            {"page_range": "1"},
            {"to_formats": {"a": 1}},
            {"to_formats": "[" * 60_000},
            {"pipeline": ["vlm", "vlm"]},  # a field of a form that appears twice
            {"image_export_mode": ["embedded"]},
        ],
    )
    def test_values_that_make_no_sense(self, given: dict[str, Any]) -> None:
        with pytest.raises(UsageError):
            conversion(given)
