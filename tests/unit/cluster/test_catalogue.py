"""A worker's input stream gives the pages of its units, as the driver has planned them, and no others."""

from pathlib import Path

import pytest
from coded_pages import CorpusMaker

from pagemill.cluster.catalogue import UnitCatalogue
from pagemill.cluster.units import decode_unit, encode, make_unit
from pagemill.imaging.limits import DecodeLimits
from pagemill.imaging.page import PdfInfo
from pagemill.sources import SourceOptions
from pagemill.sources.base import EncodedImage
from pagemill.sources.stream import InputStream


class Probe:
    limits = DecodeLimits()

    async def probe_pdf(self, path: Path, password: str | None = None) -> PdfInfo:
        return PdfInfo(page_count=5, sizes=((150.0, 200.0),), metadata={})


def of_refs(refs):
    names = ("key", "page_id", "position", "page_number", "metadata", "error", "estimated_bytes")
    return [{name: getattr(ref, name) for name in names} | {"doc_id": ref.document.doc_id} for ref in refs]


async def refs_of(inputs, catalogue=None, *, planning=False):
    stream = InputStream(inputs, options=SourceOptions(), decoder=Probe(), catalogue=catalogue, planning=planning)
    return [ref async for ref in stream.pages()]


@pytest.fixture
def inputs(tmp_path):
    maker = CorpusMaker(tmp_path)
    maker.pdf(5)
    maker.images(1)
    maker.parquet(20)
    maker.tiff(3)
    maker.images(1)
    paths = maker.corpus().paths
    paths[-1].write_bytes(paths[1].read_bytes())  # identical content: a second copy
    return [*map(str, paths), str(tmp_path / "missing.png")]


async def test_units_give_the_references_of_the_whole_input(inputs):
    whole = await refs_of(inputs)
    planned = await refs_of(inputs, planning=True)
    assert len(whole) == 31 and not any(isinstance(ref.payload, EncodedImage) for ref in planned[6:26])

    found = []
    for start in range(0, 30, 7):
        unit = decode_unit(encode(make_unit(start, planned[start : min(start + 7, 30)])))
        found += await refs_of([source.uri for source in unit.sources], UnitCatalogue(unit))
    assert of_refs(found) == of_refs(whole[:30])
    assert planned[30].error == whole[30].error is not None


async def test_a_file_that_is_twice_in_a_unit_gives_both_its_copies(inputs):
    twice = [inputs[1], inputs[1], inputs[0], inputs[0]]
    planned = await refs_of(twice, planning=True)
    unit = decode_unit(encode(make_unit(0, planned)))
    found = await refs_of([source.uri for source in unit.sources], UnitCatalogue(unit))
    assert of_refs(found) == of_refs(planned) and len({ref.page_id for ref in found}) == 12


async def test_a_file_that_has_changed_gives_none_of_its_pages(inputs):
    planned = await refs_of(inputs[:2], planning=True)
    unit = make_unit(0, planned)
    Path(inputs[0]).write_bytes(Path(inputs[0]).read_bytes() + b"\n")
    found = await refs_of(inputs[:2], UnitCatalogue(unit))
    assert [ref.page_id for ref in found] == ["scan-01_1"]
