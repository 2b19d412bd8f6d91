import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner, Result
from PIL import Image
from synthetic_run import open_run, page, region, write, write_run

import pagemill
from pagemill.app import search as searching
from pagemill.app.search import QueryEngineSettings, Searcher
from pagemill.cli import cli
from pagemill.document.labels import Label
from pagemill.embedding.base import EmbeddingInput, EngineIdentity, EngineSettings, Modality, Role, normalised
from pagemill.embedding.contents import contents
from pagemill.embedding.vectors import FOLDER, Part, VectorPaths, VectorsInfo
from pagemill.embedding.writing import VectorWriter
from pagemill.errors import DifferentRunError, MissingInputError, OutputError, UnsupportedInputError, UsageError
from pagemill.retrieval.building import build_index
from pagemill.runtime import engines
from pagemill.store.opening import OpenMode
from pagemill.store.reading import RunReader

COLOURS = {"mill_1": (255, 0, 0), "mill_2": (0, 0, 255)}


class ColourEngine:
    """Sees one colour in an image; of a text, whether it names one."""

    name = "colours"
    max_batch = 4
    concurrency = 1
    modalities = frozenset({Modality.TEXT, Modality.IMAGE})
    made: list[EngineSettings] = []  # noqa: RUF012 - told to the test
    asked: list[EmbeddingInput] = []  # noqa: RUF012
    closed = 0

    def __init__(self, settings: EngineSettings) -> None:
        self.made.append(settings)

    @property
    def identity(self) -> EngineIdentity:
        return EngineIdentity(engine=self.name, model="rgb", dimension=3)

    def embed(self, inputs: Sequence[EmbeddingInput]) -> list[np.ndarray]:
        self.asked.extend(inputs)
        return [
            each.image.mean(axis=(0, 1))
            if each.image is not None
            else np.array([1.0, 0, 0]) * ("red" in each.text) + 0.1
            for each in inputs
        ]

    def close(self) -> None:
        type(self).closed += 1


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    out = tmp_path / "run"
    write_run(
        out,
        [
            page("mill", 1, [region(0, Label.TEXT, "The paper mill")]),
            page("mill", 2, [region(0, Label.TABLE, "한지 | 수강료")]),
        ],
    )
    identity = EngineIdentity(engine="colours", model="rgb", dimension=3)
    info = VectorsInfo(part=Part.IMAGES, identity=identity, dtype="float32")
    with RunReader.open(out) as reader, VectorWriter(VectorPaths(out / FOLDER, Part.IMAGES), info) as writer:
        rows = [each.row for each_page in reader.pages() for each in contents(each_page, Part.IMAGES, images=True)]
        vectors = np.array([COLOURS[row.key.page_id] for row in rows], dtype=np.float32) / 255
        writer.append(rows, vectors)
        writer.publish(rows)
    build_index(out)
    ColourEngine.made, ColourEngine.asked, ColourEngine.closed = [], [], 0
    monkeypatch.setattr(engines, "load", lambda group, name: {"colours": ColourEngine}[name])
    return out


def picture(colour: tuple[int, int, int]) -> bytes:
    stream = io.BytesIO()
    Image.new("RGB", (40, 30), colour).save(stream, "PNG")
    return stream.getvalue()


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [*map(str, arguments)], catch_exceptions=False, standalone_mode=False)


def test_search_by_words_and_vectors(run: Path) -> None:
    hits = pagemill.search(run, "a red page")
    assert [hit.page_id for hit in hits] == ["mill_1", "mill_2"]
    assert set(hits[0].parts) == {"images"}
    assert ColourEngine.asked[0].role is Role.QUERY
    assert ColourEngine.closed == 1


def test_search_by_image(run: Path, tmp_path: Path) -> None:
    assert pagemill.search(run, image=picture((10, 0, 250)), top=1)[0].page_id == "mill_2"
    assert ColourEngine.asked[-1].role is Role.IMAGE  # as the pages: it asks no question
    path = tmp_path / "red.png"
    path.write_bytes(picture((250, 0, 0)))
    hits = [json.loads(line) for line in invoke("search", run, "--by-image", path, "--json").stdout.splitlines()]
    assert hits[0]["page_id"] == "mill_1"
    assert hits[0]["parts"]["images"]["rank"] == 1


def test_what_is_no_image_is_refused(run: Path) -> None:
    with pytest.raises(UnsupportedInputError):
        pagemill.search(run, image=b"no image")


def test_search_by_image_says_which_engine_takes_none(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ColourEngine, "modalities", frozenset({Modality.TEXT}))
    with pytest.raises(UsageError, match="colours cannot embed image") as caught:
        pagemill.search(run, image=picture((0, 0, 0)))
    assert "pagemill embed" in (caught.value.remedy or "")


def test_words_alone_need_no_engine(run: Path) -> None:
    assert [hit.page_id for hit in pagemill.search(run, "수강료", parts=["full-text"])] == ["mill_2"]
    assert not ColourEngine.made


def test_an_engine_is_loaded_once_with_its_location(run: Path) -> None:
    settings = QueryEngineSettings(servers=("http://127.0.0.1:9",), device="cpu")
    with Searcher(run, settings) as searcher:
        searcher.search("red")
        searcher.search("blue")
    (made,) = ColourEngine.made
    assert (made.servers, made.device, made.model, made.dimension) == (("http://127.0.0.1:9",), "cpu", "rgb", 3)


def test_servers_are_not_named_to_the_embedded_engine(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts by the embedded engine, images by a server: one search asks both."""
    from pagemill.embedding import ngram_engine

    engine = ngram_engine.NgramEngine(EngineSettings(folder=run / FOLDER))
    info = VectorsInfo(part=Part.TEXT, identity=engine.identity, dtype="float32")
    with RunReader.open(run) as reader, VectorWriter(VectorPaths(run / FOLDER, Part.TEXT), info) as writer:
        found = [each for each_page in reader.pages() for each in contents(each_page, Part.TEXT, images=False)]
        made = engine.embed([EmbeddingInput(role=Role.PASSAGE, text=each.text) for each in found])
        writer.append([each.row for each in found], normalised(made))
        writer.publish([each.row for each in found])
    build_index(run)
    known = {"colours": ColourEngine, "ngram": ngram_engine.create}
    monkeypatch.setattr(engines, "load", lambda group, name: known[name])
    hit = pagemill.search(run, "수강료", servers=["http://127.0.0.1:9"], model="rgb", device="cpu")[0]
    assert (hit.page_id, set(hit.parts)) == ("mill_2", {"images", "text", "full-text"})
    VectorPaths(run / FOLDER, Part.IMAGES).vectors.unlink()
    VectorPaths(run / FOLDER, Part.IMAGES).ids.unlink()
    build_index(run)
    with pytest.raises(UsageError, match="asks no server"):  # no flag is ignored
        pagemill.search(run, "수강료", servers=["http://127.0.0.1:9"])


def test_a_picture_with_words_is_a_question(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ColourEngine, "modalities", frozenset(Modality))
    pagemill.search(run, "red", image=picture((10, 0, 250)))
    pagemill.search(run, " ", image=picture((10, 0, 250)))
    assert [(each.role, each.text) for each in ColourEngine.asked] == [(Role.QUERY, "red"), (Role.IMAGE, "")]


def test_another_model_is_refused(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    identity = EngineIdentity(engine="colours", model="cmyk", dimension=3)
    monkeypatch.setattr(ColourEngine, "identity", property(lambda self: identity))
    with pytest.raises(DifferentRunError, match="cmyk"):
        pagemill.search(run, "red")


def test_vectors_that_were_cut_are_asked_with_cut_ones(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    identity = EngineIdentity(engine="colours", model="rgb", dimension=4)
    monkeypatch.setattr(ColourEngine, "identity", property(lambda self: identity))
    monkeypatch.setattr(ColourEngine, "embed", lambda self, inputs: [np.array([0, 0, 1.0, 50])] * len(inputs))
    assert pagemill.search(run, "blue", top=1)[0].page_id == "mill_2"


@pytest.mark.parametrize(
    "options",
    [{"query": " "}, {"query": "x", "top": 0}, {"query": "x", "top": 5000}, {"query": "x", "parts": ["words"]}],
)
def test_what_makes_no_sense_is_refused(run: Path, options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        pagemill.search(run, **options)


def test_a_part_without_vectors_is_refused(run: Path) -> None:
    with pytest.raises(UsageError) as caught:
        pagemill.search(run, "x", parts=["regions"])
    assert "pagemill embed" in (caught.value.remedy or "")


def test_without_an_index(tmp_path: Path) -> None:
    with pytest.raises(MissingInputError):
        pagemill.search(tmp_path, "x")


def test_the_command_prints_hits_with_marks(run: Path) -> None:
    printed = invoke("search", run, "paper", "--part", "full-text").stdout
    assert "mill_1" in printed
    assert "The **paper** mill" in printed
    assert "full-text 1" in printed


def test_the_command_says_when_nothing_is_found_or_the_index_is_behind(run: Path) -> None:
    assert "No page matches" in invoke("search", run, "unheardof", "--part", "full-text").stderr
    with open_run(run, OpenMode.RESUME) as directory:
        write(directory, page("mill", 9, [region(0, Label.TEXT, "The weir")]), 9)
    assert "pagemill index" in invoke("search", run, "paper", "--part", "full-text").stderr


def test_index_command_shows_what_is_in_it(run: Path) -> None:
    told = invoke("index", run)
    assert told.return_value == 0
    assert "2 pages, 2 regions" in told.stderr
    assert "2 vectors of page images, 3 components, by colours" in told.stderr
    assert invoke("index", run, "--quiet").stderr == ""


def test_eval_says_before_it_works_where_it_cannot_write(run: Path, tmp_path: Path) -> None:
    queries = tmp_path / "queries.jsonl"
    queries.write_text('{"id": "1", "query": "red", "relevant": ["mill_1"]}\n', encoding="utf-8")
    with pytest.raises(OutputError, match="no such folder"):
        invoke("eval", "retrieval", run, "--queries", queries, "-o", tmp_path / "nowhere" / "result.json")
    assert not ColourEngine.asked


def test_eval_command(run: Path, tmp_path: Path) -> None:
    pytest.importorskip("ir_measures")
    queries = tmp_path / "queries.jsonl"
    lines = [
        {"id": "1", "query": "red", "relevant": ["mill_1"], "type": "visual"},
        {"id": "2", "query": "수강료", "relevant": ["mill_2", "gone_1"], "type": "text"},
    ]
    queries.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    target = tmp_path / "result.json"
    printed = invoke("eval", "retrieval", run, "--queries", queries, "-o", target).stdout
    assert "fused, type visual" in printed
    assert "not in the index: 1: gone_1" in printed
    result = json.loads(target.read_text(encoding="utf-8"))
    assert set(result["parts"]) == {"fused", "images", "full-text"}
    assert result["parts"]["full-text"]["by_query"]["1"]["RR"] == 0
    assert result["parts"]["fused"]["by_query"]["1"]["RR"] == 1
    compared = invoke("eval", "retrieval", run, "--queries", queries, "--compare", target).stdout
    assert "randomisation" in compared


def test_searching_imports_no_engine() -> None:
    assert searching.search is pagemill.search
