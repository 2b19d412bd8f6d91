"""The engine that asks servers, with a server that writes down what it is asked."""

import base64
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from local_web import Handler, serving
from PIL import Image

pytest.importorskip("aiohttp")

from pagemill.embedding.base import EmbeddingInput, EngineSettings, Modality, Role
from pagemill.embedding.vllm_engine import _vectors, create
from pagemill.errors import NetworkError, UsageError

DIMENSION = 12
MODEL = "qwen3-vl-embedding-2b"
PIXELS = np.random.default_rng(0).integers(0, 255, size=(64, 96, 3), dtype=np.uint8)


class Server:
    """A pooling server. ``answer`` may be replaced: it gets path and body, and gives status and body."""

    def __init__(self) -> None:
        self.bodies: list[Any] = []
        self.answer = self.embed
        server = self

        class Pooling(Handler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self.reply(200, {"data": [{"id": MODEL}]} if self.path == "/v1/models" else {})

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                self.reply(*server.answer(self.path, body))

            def reply(self, status: int, body: Any) -> None:
                self.answer(status, json.dumps(body).encode())

        self._serving = serving(Pooling)
        self.url = self._serving.__enter__().url

    def embed(self, path: str, body: Any) -> tuple[int, Any]:
        if path == "/tokenize":
            return 200, {"tokens": [*body["prompt"].encode()], "max_model_len": 8192}
        if path == "/detokenize":
            return 200, {"prompt": bytes(body["tokens"]).decode("utf-8", "replace")}
        self.bodies.append(body)
        rows = [np.full(DIMENSION, index + 1, dtype="<f4") for index in range(len(body["messages"]))]
        data = [{"index": i, "embedding": base64.b64encode(row.tobytes()).decode()} for i, row in enumerate(rows)]
        return 200, {"data": data[::-1]}

    def close(self) -> None:
        self._serving.__exit__(None, None, None)


@pytest.fixture
def server():
    server = Server()
    yield server
    server.close()


@pytest.fixture
def engine(server):
    engine = create(EngineSettings(folder=Path("nowhere"), servers=(server.url,), timeout_s=10, wait_s=0.2))
    server.bodies.clear()
    yield engine
    engine.close()


def parts(conversation: list[Any]) -> list[tuple[str, str]]:
    return [
        (message["role"], part.get("text", part["type"]))
        for message in conversation
        for part in (message["content"] or [{"type": "nothing"}])
    ]


def test_conversations_are_those_of_the_reference(engine, server):
    inputs = [
        EmbeddingInput(role=Role.QUERY, text="who?"),
        EmbeddingInput(role=Role.PASSAGE, text="page"),
        EmbeddingInput(role=Role.IMAGE, image=PIXELS),
        EmbeddingInput(role=Role.IMAGE, image=PIXELS, text="a caption"),
    ]
    vectors = engine.embed(inputs)
    np.testing.assert_array_equal(vectors[:, 0], [1, 2, 3, 4])  # by index, in whatever order they come
    (body,) = server.bodies
    assert {name: body[name] for name in body if name != "messages"} == {
        "model": MODEL,
        "continue_final_message": True,
        "add_special_tokens": True,
        "encoding_format": "base64",
        "embed_dtype": "float32",
    }
    image = "You are given an image. Represent the image for retrieving relevant information."
    assert [parts(each) for each in body["messages"]] == [
        [
            ("system", "Find the document page that answers this question."),
            ("user", "who?"),
            ("assistant", ""),
        ],
        [("user", "page"), ("assistant", "")],
        [("system", image), ("user", "image_url"), ("assistant", "")],
        [("system", image), ("user", "image_url"), ("user", "a caption"), ("assistant", "")],
    ]
    url = body["messages"][2][1]["content"][0]["image_url"]["url"]
    sent = np.asarray(Image.open(io.BytesIO(base64.b64decode(url.removeprefix("data:image/jpeg;base64,")))))
    assert sent.shape == PIXELS.shape


def test_images_are_within_the_budget(engine, server):
    engine.embed([EmbeddingInput(role=Role.IMAGE, image=np.zeros((3508, 2480, 3), dtype=np.uint8))])
    url = server.bodies[0]["messages"][0][1]["content"][0]["image_url"]["url"]
    width, height = Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))).size
    assert width % 32 == height % 32 == 0
    assert 1_700_000 < width * height <= 1_843_200


def test_long_texts_are_cut_by_the_models_own_tokens(engine, server):
    text = "가" * 5000  # of three tokens each, here
    engine.embed([EmbeddingInput(role=Role.PASSAGE, text=text), EmbeddingInput(role=Role.PASSAGE, text="short")])
    (long, short) = (each[0]["content"][0]["text"] for each in server.bodies[0]["messages"])
    assert short == "short"
    assert text.startswith(long)
    assert 8192 - 100 < len(long.encode()) <= 8192 - 64
    assert engine.cut_texts == 1


def test_identity(engine, server):
    assert engine.modalities == frozenset(Modality)
    identity = engine.identity
    assert (identity.engine, identity.model, identity.dimension) == ("vllm", MODEL, DIMENSION)
    assert identity.instructions["query"] == "Find the document page that answers this question."


@pytest.mark.parametrize(
    "data",
    [
        [],
        [{"index": 0, "embedding": ""}],
        [{"index": 0, "embedding": "AAA"}],
        [{"index": 1, "embedding": base64.b64encode(bytes(4)).decode()}],
        "nothing",
    ],
)
def test_answers_that_are_none(data):
    with pytest.raises(ValueError):
        _vectors(json.dumps({"data": data}).encode(), 1)


def test_a_server_that_does_not_embed_is_left_out(server):
    other = Server()
    try:
        other.answer = lambda path, body: (404, {"error": {"message": "no embeddings here"}})
        engine = create(EngineSettings(folder=Path("nowhere"), servers=(other.url, server.url)))
        try:
            vectors = [engine.embed([EmbeddingInput(role=Role.PASSAGE, text="words")]) for _ in range(4)]
        finally:
            engine.close()
    finally:
        other.close()
    assert {each.shape for each in vectors} == {(1, DIMENSION)}
    assert len(server.bodies) == 5  # the first one asks for the dimension


def test_servers_and_models_that_are_not_there(server):
    def make(**options: Any) -> None:
        create(EngineSettings(folder=Path("nowhere"), wait_s=0.1, **options)).close()

    with pytest.raises(UsageError, match="no model server is named"):
        make()
    with pytest.raises(NetworkError):
        make(servers=("http://127.0.0.1:9",))
    with pytest.raises(UsageError, match="not for embedding"):
        make(servers=(server.url,), model="glm-ocr")
    server.answer = lambda path, body: (404, {"error": {"message": "no embeddings here"}})
    with pytest.raises(UsageError):
        make(servers=(server.url,))
