"""Page images once more, embedded: each one of its page, wherever the sources lie now."""

import hashlib
from pathlib import Path

import msgspec
import numpy as np
import pytest
from PIL import Image
from synthetic_run import open_run, page
from telling_engine import TellingEngine, run_embed, vector_of

from pagemill.document.identity import PageKey
from pagemill.document.page import PageResult
from pagemill.embedding.base import Modality, Role, normalised
from pagemill.embedding.vectors import Part, VectorFile
from pagemill.errors import ExitCode, MissingInputError
from pagemill.sources.digest import Identifier
from pagemill.store.opening import OpenMode
from pagemill.store.rows import Place


class Pictures:
    """Page images of one colour each, and a run in which they were parsed."""

    def __init__(self, folder: Path, count: int = 5) -> None:
        self.folder = folder
        folder.mkdir()
        self.pages: dict[str, np.ndarray] = {}
        self.out = folder.parent / "run"
        records = []
        for number in range(1, count + 1):
            pixels = np.zeros((30, 20, 3), dtype=np.uint8)
            pixels[:10, :, number % 3] = 40 * number
            Image.fromarray(pixels).save(self.path(number))
            self.pages[f"scan{number}_1"] = np.ascontiguousarray(np.rot90(pixels, -1)) if number == 2 else pixels
            records.append(self.record(number))
        with open_run(self.out, OpenMode.FRESH) as run:
            for record in records:
                key = PageKey.parse(record.page_key)
                known = run.catalogue.register(key.digest, record.source)
                assert known.copy == 1
                run.start_page(key, Place.of(record))
                run.write_page(record, [])
            run.finish(interrupted=False, complete=True)

    def path(self, number: int) -> Path:
        return self.folder / f"scan{number}.png"

    def record(self, number: int) -> PageResult:
        digest = hashlib.sha256(self.path(number).read_bytes()).hexdigest()
        return msgspec.structs.replace(
            page(f"scan{number}", 1),
            page_idx=number,
            source=str(self.path(number)),
            page_key=f"{digest}/1",
            rotation=90 if number == 2 else 0,
        )

    def check(self, *missing: str) -> None:
        with VectorFile.open(self.out, Part.IMAGES) as file:
            assert {row.key.page_id for row in file.rows} == self.pages.keys() - set(missing)
            for row in file.rows:
                expected = normalised(vector_of(Role.IMAGE, "", self.pages[row.key.page_id])[None])[0]
                np.testing.assert_allclose(file.find(row.key.page_id), expected, atol=1e-6)


def test_page_images_come_from_their_sources(tmp_path: Path) -> None:
    pictures = Pictures(tmp_path / "scans")
    engine = TellingEngine(Modality.IMAGE)
    assert run_embed(pictures.out, engine).exit_code == ExitCode.OK
    pictures.check()
    assert run_embed(pictures.out, engine).parts[Part.IMAGES].embedded == 0
    assert len(engine.embedded) == 5


def test_files_that_the_run_knows_are_not_read_for_their_digest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pictures = Pictures(tmp_path / "scans")
    with open_run(pictures.out, OpenMode.RESUME) as run:
        for number in range(1, 5):
            path, status = pictures.path(number), pictures.path(number).stat()
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            run.catalogue.remember_digest(path, status.st_size, status.st_mtime_ns, digest)
        run.finish(interrupted=False, complete=True)
    read = []
    take = Identifier._digest
    monkeypatch.setattr(Identifier, "_digest", lambda self, file: read.append(file.name) or take(self, file))
    assert run_embed(pictures.out, TellingEngine(Modality.IMAGE)).exit_code == ExitCode.OK
    assert [Path(name).name for name in read] == ["scan5.png"]
    pictures.check()


def test_sources_that_are_gone_changed_or_moved(tmp_path: Path) -> None:
    pictures = Pictures(tmp_path / "scans")
    pictures.path(1).unlink()
    Image.new("RGB", (9, 9)).save(pictures.path(3))
    outcome = run_embed(pictures.out, TellingEngine(Modality.IMAGE))
    assert outcome.exit_code == ExitCode.PAGES_FAILED
    assert {name for name, _, _ in outcome.failures} == {"scan1_1", "scan3_1"}
    assert any("scan1.png' does not exist" in message for _, message, _ in outcome.failures), outcome.failures
    assert any("has changed since" in message for _, message, _ in outcome.failures)
    pictures.check("scan1_1", "scan3_1")


def test_sources_lie_elsewhere_now(tmp_path: Path) -> None:
    pictures = Pictures(tmp_path / "scans")
    pictures.folder.rename(tmp_path / "moved")
    outcome = run_embed(pictures.out, TellingEngine(Modality.IMAGE))
    assert (outcome.failed, outcome.exit_code) == (5, ExitCode.INPUT)
    assert all("--input" in (remedy or "") for _, _, remedy in outcome.failures)
    with pytest.raises(MissingInputError, match="nowhere' does not exist"):
        run_embed(pictures.out, TellingEngine(Modality.IMAGE), inputs=(str(tmp_path / "nowhere"),))
    (tmp_path / "empty").mkdir()
    outcome = run_embed(pictures.out, TellingEngine(Modality.IMAGE), inputs=(str(tmp_path / "empty"),))
    assert {name for name, _, _ in outcome.failures} == set(pictures.pages)
    assert all(f"is not in {tmp_path / 'empty'}" in message for _, message, _ in outcome.failures)
    assert run_embed(pictures.out, TellingEngine(Modality.IMAGE), inputs=(str(tmp_path / "moved"),)).failed == 0
    pictures.check()
