"""Every format of ours can be written, and one of another package appears wherever documents are offered."""

import importlib
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from installed_package import install_package
from rest_world import FastEngines, image, rest_world
from synthetic_run import sample_pages, write_run

from pagemill.cli import export
from pagemill.errors import UsageError
from pagemill.export.formats import export_format, format_names, served_formats
from pagemill.runtime import engines

SHOUT = """
from pagemill.export.formats import ExportFormat
from pagemill.export.plain_text import document_text

FORMAT = ExportFormat(
    ending="-shout",
    suffix=".shout",
    text=lambda pages, about: (piece.upper() for piece in document_text(pages)),
    served_as="shout",
    title="Shouted",
)
"""


@pytest.fixture
def plugin(tmp_path: Path) -> Iterator[None]:
    """A package with the format ``shout``, and one that is broken."""
    points = "[pagemill.export_formats]\nshout = acme_shout:FORMAT\nbroken = acme_nowhere:FORMAT\n"
    site = install_package(tmp_path / "site", "acme-shout", points, acme_shout=SHOUT)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(site))
        yield
    importlib.reload(export)  # its choices are those of the start: the next tests get ours alone


def test_each_format_of_ours_has_what_writes_it() -> None:
    for name in format_names():
        each = export_format(name)
        assert [each.text, each.to_file, each.to_folder, each.to_table] != [None] * 4
        assert (each.to_file is not None) >= each.ending.startswith(".")
        assert bool(each.text) == bool(each.suffix)
    assert list(served_formats()) == ["md", "json", "docling.json", "html"]
    with pytest.raises(UsageError, match="unknown format 'nothing'"):
        export_format("nothing")


def test_a_format_of_another_package_is_a_file_and_a_line(plugin: None, tmp_path: Path) -> None:
    write_run(tmp_path / "run", sample_pages())
    command = importlib.reload(export).command
    assert command.main([str(tmp_path / "run"), "-f", "shout", "-q"], standalone_mode=False) == 0
    assert "DEAR MILLER" in (tmp_path / "run-shout" / "letter.shout").read_text()


async def test_the_server_offers_it(
    plugin: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(engines, "load", FastEngines().load)
    async with rest_world(tmp_path / "data") as world:
        with caplog.at_level(logging.WARNING):
            assert (await world.client.get("/v1/options")).json()["formats"]["shout"] == "Shouted"
        assert "the export format 'broken' cannot be loaded" in caplog.text
        job = await world.finished(image(7))
        answer = await world.client.get(f"/v1/jobs/{job['id']}/documents/{job['documents'][0]['id']}.shout")
        assert (answer.text, answer.headers["content-type"]) == ("SHADE 7\n", "text/plain; charset=utf-8")
