from pathlib import Path

import numpy as np
import pytest
from synthetic_run import page, region, write_run

import pagemill
from pagemill.document.labels import Label
from pagemill.embedding.base import EngineIdentity
from pagemill.embedding.contents import chunk_content, document_digest, text_digests
from pagemill.embedding.vectors import FOLDER, Part, VectorFile, VectorPaths, VectorsInfo
from pagemill.embedding.writing import VectorWriter
from pagemill.errors import DifferentRunError
from pagemill.publishing.build import build
from pagemill.publishing.options import BuildOptions
from pagemill.store.reading import RunReader


def test_chunks_of_a_document_of_which_any_page_changed_are_not_published(tmp_path: Path) -> None:
    pages = [page("mill", number, [region(0, Label.TEXT, f"Page {number}.")]) for number in (1, 2)]
    pages += [page("other", 1, [region(0, Label.TEXT, "Another one.")])]
    write_run(tmp_path / "before", pages)
    identity = EngineIdentity(engine="letters", model="letters", dimension=2)
    info = VectorsInfo(part=Part.CHUNKS, identity=identity, dtype="float32")
    files = VectorPaths(tmp_path / "before" / FOLDER, Part.CHUNKS)
    with RunReader.open(tmp_path / "before") as reader, VectorWriter(files, info) as writer:
        documents = [list(listed) for _, listed in reader.documents()]
        digests = [document_digest(text_digests(listed)) for listed in documents]
        rows = [
            chunk_content(chunk, digest).row
            for listed, digest in zip(documents, digests, strict=True)
            for chunk in pagemill.chunks(listed)
        ]
        writer.append(rows, np.eye(2, dtype=np.float32)[[0] * len(rows)])
        writer.publish(rows)
        assert {row.key.page_id for row in rows} == {"mill_1", "other_1"}  # the second page of the mill is in a chunk
        folder, _ = build(reader, BuildOptions(licence="mit"))
    assert len(VectorFile.open(folder, Part.CHUNKS)) == len(rows)

    pages[1].regions[0].content = "Another second page."
    write_run(tmp_path / "after", pages)
    (tmp_path / "before" / FOLDER).rename(tmp_path / "after" / FOLDER)
    with RunReader.open(tmp_path / "after") as reader:
        with pytest.raises(DifferentRunError, match="vectors of chunks"):
            build(reader, BuildOptions(licence="mit"))
        folder, _ = build(reader, BuildOptions(licence="mit", partial=True))
    assert [row.key.page_id for row in VectorFile.open(folder, Part.CHUNKS).rows] == ["other_1"]
