"""A run directory to play with: pages, ways to read it back, and what must always be true of it."""

import hashlib
import json
import shutil
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest
from small_run import DATABASE, write_run

from pagemill.document.identity import PageKey
from pagemill.document.labels import Label
from pagemill.document.names import crop_path
from pagemill.document.page import ImageCrop, PageError, PageResult, Region, Status
from pagemill.export.markdown import page_markdown
from pagemill.store.derived import Exporters
from pagemill.store.reading import RunReader
from pagemill.store.records import decompress
from pagemill.store.rows import Place
from pagemill.store.run_directory import RunDirectory
from pagemill.store.summary import Counters


def report(
    pages: Iterator[PageResult], previews: Callable[[str], bytes | None], summary: Mapping[str, Any]
) -> Iterator[str]:
    yield f"{summary['pages']} pages\n"
    for page in pages:
        yield f"{page.page_id} {previews(page.page_id)!r}\n"


EXPORTERS = Exporters(
    embedding_text=lambda page: page.markdown.upper(),
    document_markdown=lambda pages: (f"{page.markdown or page_markdown(page)}\n" for page in pages),
    document_json=lambda pages, *_: json.dumps([page.page_number for page in pages]),
    report=report,
)


@dataclass
class Store:
    """One output directory, and short words for what is done with it."""

    out: Path
    exporters: ClassVar[Exporters] = EXPORTERS

    def open(self, **options: Any) -> RunDirectory:
        settings: dict[str, Any] = {"exporters": EXPORTERS, "identity": {"lang": ["en"]}, "settings": {"threads": 2}}
        return RunDirectory.open(self.out, **settings | options)

    def write(self, *pages: int | PageResult, **options: Any) -> None:
        """A run of these pages, or the next process of one, from its start to its end."""
        with self.open(**options) as run:
            for page in pages:
                run.write_page(self.page(page) if isinstance(page, int) else page)
            run.finish()

    @property
    def database(self) -> Path:
        return self.out / DATABASE

    @staticmethod
    def digest(source: str) -> str:
        return hashlib.sha256(source.encode()).hexdigest()

    def key(self, number: int, source: str = "doc", copy: int = 1) -> PageKey:
        return PageKey(self.digest(source), number, copy)

    def place(self, number: int, source: str = "doc") -> Place:
        return Place(f"{source}_{number}" if number else source, source, f"{source}.pdf", number or None, number)

    def page(self, number: int, source: str = "doc", *, text: str = "text", copy: int = 1, **fields: Any) -> PageResult:
        region = Region(index=0, label=Label.TEXT, bbox_2d=(0, 0, 1000, 1000), bbox=(0, 0, 10, 10), content=text)
        place = self.place(number, source)._asdict()
        place["source"] = place.pop("uri")
        place["page_key"] = str(self.key(number, source, copy))
        return PageResult(regions=[region], markdown=text, **place | fields)

    def failed(self, number: int, source: str = "doc", *, category: str = "timeout", **fields: Any) -> PageResult:
        error = PageError(component="layout", category=category, message=f"{category}!")
        return self.page(number, source, status=Status.FAILED, errors=[error], **fields)

    def with_crops(self, page: PageResult, *contents: bytes) -> list[tuple[str, bytes]]:
        """Add crops to a record; give what is to be written."""
        files = [(crop_path(page.page_id, region), content) for region, content in enumerate(contents)]
        page.image_crops = [
            ImageCrop(
                path=path,
                bbox=(0, 0, 1, 1),
                label=Label.IMAGE,
                region=region,
                size=len(content),
                sha256=hashlib.sha256(content).hexdigest(),
            )
            for region, (path, content) in enumerate(files)
        ]
        return files

    def start(self, run: RunDirectory, number: int, source: str = "doc", *, alone: bool = False) -> None:
        run.start_page(self.key(number, source), self.place(number, source), alone=alone)

    def lines(self, name: str = "ocr_results.jsonl") -> list[Any]:
        content = (self.out / name).read_bytes()
        assert not content or content.endswith(b"\n")
        return [json.loads(line) for line in content.splitlines()]

    def ids(self, name: str = "ocr_results.jsonl") -> list[str]:
        return [line["page_id"] for line in self.lines(name)]

    def files(self, folder: str = ".") -> set[str]:
        return {str(path.relative_to(self.out)) for path in (self.out / folder).rglob("*") if path.is_file()}

    def states(self) -> dict[str, str]:
        with RunReader.open(self.out) as reader:
            return {row.page_id: row.state.name for row in reader.rows()}

    def run_json(self) -> Any:
        return json.loads((self.out / "run.json").read_text())

    def check(self, run: RunDirectory | None = None, *, stray: set[str] | frozenset[str] = frozenset()) -> None:
        """Pages, records, crops and counts agree."""
        counters, crops, keys = Counters(), set(), set()
        with RunReader.open(self.out) as reader:
            assert reader.one("PRAGMA integrity_check(1)") == "ok"
            rows = list(reader.rows())
            stored = {number: decompress(data) for number, data in reader.each_record()}
            garbage = set(reader.garbage())
            summary = reader.summary
            named = dict(reader.query("SELECT path, record FROM crops"))
        for row in rows:
            if row.state.name == "SKIPPED":
                counters.add_skipped(row.category or "")
            if row.record is None:
                assert row.state.name not in ("DONE", "FAILED")
                continue
            assert row.state.name in ("DONE", "FAILED")
            line = stored.pop(row.record)
            assert (len(line), zlib.crc32(line)) == (row.length, row.crc)
            page = msgspec.json.decode(line, type=PageResult)
            assert (page.page_key, page.page_id) == (str(row.key), row.page_id)
            counters.add(page)
            keys.add(page.page_key)
            for crop in page.image_crops:
                assert hashlib.sha256((self.out / crop.path).read_bytes()).hexdigest() == crop.sha256
                assert named[crop.path] == row.record
                crops.add(crop.path)
        assert not stored  # every record belongs to a page
        assert set(named) == crops
        for counts in (summary, run.summary) if run else (summary,):
            counted = Counters()
            counted.restore(counts)
            counted.documents = 0
            assert counters == counted
        assert len(keys) == sum(row.record is not None for row in rows)
        there = {f"crops/{path.name}" for path in (self.out / "crops").iterdir()}
        assert crops <= there <= crops | garbage | stray


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "out")


@pytest.fixture
def make_store() -> type[Store]:
    return Store


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of real exporters that has ended."""
    out = tmp_path_factory.mktemp("finished") / "out"
    write_run(out)
    return out


@pytest.fixture
def out(finished: Path, tmp_path: Path) -> Path:
    """A copy of it, to be damaged."""
    return shutil.copytree(finished, tmp_path / "out")
