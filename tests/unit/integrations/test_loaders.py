"""The loaders with their packages, and what they say without them."""

import importlib
import sys
from pathlib import Path

import pytest
from PIL import Image, ImageDraw, ImageFont

import pagemill
from pagemill.errors import MissingDependencyError

REASON = "of the dependency group adapters"


@pytest.fixture
def png(tmp_path: Path) -> Path:
    image = Image.new("RGB", (500, 120), "white")
    ImageDraw.Draw(image).text((20, 40), "alpha", fill="black", font=ImageFont.load_default(30))
    image.save(tmp_path / "alpha.png")
    return tmp_path / "alpha.png"


@pytest.fixture
def chunk(png: Path) -> pagemill.Chunk:
    return next(pagemill.chunks(pagemill.parse(png, crops=False)))


def expected(png: Path, chunk: pagemill.Chunk) -> dict[str, object]:
    boxes = [[1, *place.bbox_2d] for place in chunk.places]
    return {"source": str(png), "headings": list(chunk.headings), "pages": [1], "boxes": boxes}


@pytest.mark.slow
def test_langchain(png: Path, chunk: pagemill.Chunk):
    pytest.importorskip("langchain_core", reason=REASON)
    from pagemill.integrations.langchain import PagemillLoader

    (document,) = PagemillLoader(png, max_tokens=64, parsing={"languages": ["en"]}).load()
    assert (document.id, document.page_content) == (chunk.id, "alpha")
    assert document.metadata == expected(png, chunk)


@pytest.mark.slow
def test_llamaindex(png: Path, chunk: pagemill.Chunk):
    pytest.importorskip("llama_index.core", reason=REASON)
    from llama_index.core.schema import MetadataMode

    from pagemill.integrations.llamaindex import PagemillReader

    (document,) = PagemillReader().load_data(png, {"owner": "me"})
    assert (document.id_, document.text) == (chunk.id, "alpha")
    assert document.metadata == expected(png, chunk) | {"headings": "", "owner": "me"}
    assert "alpha.png" not in document.get_content(MetadataMode.EMBED)


@pytest.mark.slow
def test_haystack(png: Path, chunk: pagemill.Chunk):
    pytest.importorskip("haystack", reason=REASON)
    from haystack import Pipeline
    from haystack.dataclasses import ByteStream

    from pagemill.integrations.haystack import PagemillConverter

    pipeline = Pipeline()
    pipeline.add_component("convert", PagemillConverter({"max_tokens": 64}))
    again = Pipeline.from_dict(pipeline.to_dict(), allowed_modules=["pagemill.integrations.haystack"])
    stream = ByteStream(png.read_bytes(), meta={"file": "mine"})
    first, second = again.run({"convert": {"sources": [png, stream], "meta": {"n": 1}}})["convert"]["documents"]
    assert (first.id, first.content) == (chunk.id, "alpha")
    assert first.meta == expected(png, chunk) | {"n": 1}
    assert (second.meta["file"], second.meta["n"]) == ("mine", 1)


@pytest.mark.parametrize(
    ("module", "package"), [("langchain", "langchain_core"), ("llamaindex", "llama_index"), ("haystack", "haystack")]
)
def test_what_is_missing_is_named(module: str, package: str, monkeypatch: pytest.MonkeyPatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, f"pagemill.integrations.{module}", raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingDependencyError) as caught:
        importlib.import_module(f"pagemill.integrations.{module}")
    assert f"[{module}]" in (caught.value.remedy or "")
