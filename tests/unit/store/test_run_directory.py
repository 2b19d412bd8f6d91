from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from pagemill.document.labels import Label
from pagemill.document.names import crop_path
from pagemill.document.page import ImageCrop, PageError, PageResult, Region, Status
from pagemill.errors import ExitCode, NoSpaceError, OutputError
from pagemill.store.run_directory import PREVIEW_PAGES, Exporters, RunDirectory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


def page(index: int, doc: str = "doc", *, number: int | None = None, text: str = "text", **fields: Any) -> PageResult:
    region = Region(index=0, label=Label.TEXT, bbox_2d=(0, 0, 1000, 1000), bbox=(0, 0, 10, 10), content=text)
    return PageResult(
        page_id=f"{doc}_{index}",
        page_idx=index,
        doc_id=doc,
        source=f"{doc}.pdf",
        page_number=number or index + 1,
        regions=[region],
        markdown=text,
        **fields,
    )


def report(
    out: Path, pages: Iterator[PageResult], previews: Callable[[str], bytes | None], summary: Mapping[str, Any]
) -> None:
    lines = [f"{page.page_id} {previews(page.page_id)!r}\n" for page in pages]
    (out / "report.html").write_text(f"{summary['pages']} pages\n" + "".join(lines))


EXPORTERS = Exporters(
    embedding_text=lambda page: page.markdown.upper(),
    document_markdown=lambda pages: (f"{page.markdown}\n" for page in pages),
    document_json=lambda pages: json.dumps([page.page_number for page in pages]),
    report=report,
)


def create(path: Path, **options: Any) -> RunDirectory:
    return RunDirectory.create(path, exporters=EXPORTERS, **options)


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def snapshot(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*")}


def test_a_run_from_start_to_end(tmp_path: Path) -> None:
    out = tmp_path / "new" / "out"
    crop = crop_path("doc_1", 0)
    with create(out, settings={"lang": "en"}) as run:
        second = page(
            1, text="second", image_crops=[ImageCrop(path=crop, bbox=(0, 0, 1, 1), label=Label.IMAGE, region=0)]
        )
        run.write_page(second, [(crop, b"jpeg")], b"preview of two")
        run.write_page(page(0, text="first", timings={"layout": 0.5}), preview=b"preview of one")
        run.finish_document("doc")
        assert (out / "documents" / "doc.md").read_text() == "first\nsecond\n"  # page order, not order of arrival
        assert (out / "documents" / "doc.json").read_text() == "[1, 2]"
        run.finish()

    assert (out / crop).read_bytes() == b"jpeg"
    records = (out / "ocr_results.jsonl").read_bytes().splitlines()
    assert msgspec.json.decode(records[0], type=PageResult) == second
    assert lines(out / "parsed_texts.jsonl")[0] == {
        "page_id": "doc_1",
        "page_idx": 1,
        "doc_id": "doc",
        "text": "SECOND",
    }
    assert (out / "report.html").read_text() == "2 pages\ndoc_0 b'preview of one'\ndoc_1 b'preview of two'\n"
    summary = json.loads((out / "run.json").read_text())
    assert summary["settings"] == {"lang": "en"}
    assert (summary["pages"], summary["documents"], summary["crops"], summary["failed"]) == (2, 1, 1, 0)
    assert summary["regions_by_label"] == {"text": 2}
    assert summary["seconds_by_stage"] == {"layout": 0.5}
    assert summary["finished"] >= summary["started"]
    assert snapshot(out) == {
        "ocr_results.jsonl", "parsed_texts.jsonl", "run.json", "report.html", "crops", crop,
        "documents", "documents/doc.md", "documents/doc.json",
    }  # fmt: skip


def test_failures_are_counted_by_kind(tmp_path: Path) -> None:
    with create(tmp_path / "out") as run:
        timeout = PageError(component="layout", category="timeout", message="too slow")
        run.write_page(page(0, status=Status.FAILED, errors=[timeout]))
        run.write_page(page(1, errors=[PageError(component="table", category="internal", message="x", region=0)]))
        assert run.summary.failed == 1
        assert run.summary.failures_by_kind == {"timeout": 1}
        assert run.summary.warnings_by_kind == {"internal": 1}


def test_finish_writes_the_documents_that_are_still_open(tmp_path: Path) -> None:
    with create(tmp_path / "out") as run:
        run.write_page(page(0, "a.v1"))
        run.write_page(page(1, "a.v2"))
        run.finish_document("nobody")
        run.finish(interrupted=True)
    assert snapshot(tmp_path / "out" / "documents") == {"a.v1.md", "a.v1.json", "a.v2.md", "a.v2.json"}
    assert json.loads((tmp_path / "out" / "run.json").read_text())["interrupted"]


def test_a_document_that_does_not_open_has_no_page_number(tmp_path: Path) -> None:
    with create(tmp_path / "out") as run:
        broken = page(0)
        broken.page_number = None
        run.write_page(broken)
        run.finish()
    assert (tmp_path / "out" / "documents" / "doc.json").read_text() == "[null]"


def test_refuses_a_directory_with_a_run_and_replaces_it_when_fresh(tmp_path: Path) -> None:
    crop = crop_path("doc_0", 0)
    with create(tmp_path) as run:
        old = page(0, image_crops=[ImageCrop(path=crop, bbox=(0, 0, 1, 1), label=Label.IMAGE, region=0)])
        run.write_page(old, [(crop, b"x")])
        run.finish()
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "crops" / "mine.png").write_text("mine")
    with (tmp_path / "ocr_results.jsonl").open("ab") as stream:
        stream.write(b'{"page_id": "cut sho')

    with pytest.raises(OutputError, match="already holds") as caught:
        create(tmp_path)
    assert "--fresh" in (caught.value.remedy or "")
    assert caught.value.exit_code is ExitCode.OUTPUT

    with create(tmp_path, fresh=True):
        assert snapshot(tmp_path) == {
            "notes.txt", "crops", "crops/mine.png", "documents",
            "run.json", "ocr_results.jsonl", "parsed_texts.jsonl", ".previews",
        }  # fmt: skip
        assert (tmp_path / "ocr_results.jsonl").stat().st_size == 0


def test_fresh_follows_no_forged_crop_path(tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("mine")
    out = tmp_path / "out"
    with create(out) as run:
        run.write_page(
            page(
                0,
                image_crops=[ImageCrop(path="crops/../../outside.txt", bbox=(0, 0, 1, 1), label=Label.IMAGE, region=0)],
            )
        )
    with create(out, fresh=True):
        assert outside.exists()


@pytest.mark.parametrize("fresh", [False, True])
def test_never_overwrites_files_that_are_not_from_pagemill(tmp_path: Path, fresh: bool) -> None:
    (tmp_path / "report.html").write_text("mine")
    (tmp_path / "run.json").write_text('{"generator": "another program"}')
    with pytest.raises(OutputError, match="did not write"):
        create(tmp_path, fresh=fresh)
    assert (tmp_path / "report.html").read_text() == "mine"


def test_output_that_cannot_be_a_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot write"):
        create(tmp_path / "file" / "out")


@pytest.mark.parametrize(
    "name", ["x.jpg", "crops/../x.jpg", "/etc/x", "crops/", "crops/..", "crops/a/b.jpg", "crops/a\0"]
)
def test_rejects_crop_paths_outside_of_crops(tmp_path: Path, name: str) -> None:
    with create(tmp_path / "out") as run, pytest.raises(ValueError, match="crop"):
        run.write_page(page(0), [(name, b"x")])


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
@pytest.mark.parametrize("failing_file", [0, 1])
def test_a_full_disk_leaves_whole_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, failing_file: int
) -> None:
    out = tmp_path / "out"
    with create(out) as run:
        run.write_page(page(0))
        real_write, calls = os.write, 0

        def nearly_full(fd: int, data: Any) -> int:
            nonlocal calls
            calls += 1
            if calls <= failing_file:
                return real_write(fd, data)
            if calls == failing_file + 1:
                return real_write(fd, data[:7])
            raise OSError(code, os.strerror(code))

        monkeypatch.setattr(os, "write", nearly_full)
        with pytest.raises(NoSpaceError) as caught:
            run.write_page(page(1))
        monkeypatch.undo()
        assert caught.value.exit_code is ExitCode.NO_SPACE
        assert "space" in (caught.value.remedy or "")
        assert [line["page_idx"] for line in lines(out / "ocr_results.jsonl")] == [0]
        assert [line["page_idx"] for line in lines(out / "parsed_texts.jsonl")] == [0]
        run.write_page(page(2))  # space again: the run can go on
        run.finish()
    assert [line["page_idx"] for line in lines(out / "ocr_results.jsonl")] == [0, 2]
    assert run.summary.pages == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_leaves_no_half_crop(tmp_path: Path) -> None:
    with create(tmp_path / "out") as run:
        temporary = tmp_path / "out" / "crops" / "doc_0_0.jpg.pagemill-tmp"
        temporary.symlink_to("/dev/full")
        with pytest.raises(NoSpaceError):
            run.write_page(page(0), [("crops/doc_0_0.jpg", b"x" * 10)])
        assert not list((tmp_path / "out" / "crops").iterdir())
        assert not lines(tmp_path / "out" / "ocr_results.jsonl")


def test_text_that_utf8_cannot_hold(tmp_path: Path) -> None:
    with create(tmp_path / "out") as run:
        run.write_page(page(0, text="broken \ud800 pair", metadata={"key\udc00": ["\udfff"]}))
        run.finish()
    read = msgspec.json.decode((tmp_path / "out" / "ocr_results.jsonl").read_bytes(), type=PageResult)
    assert read.regions[0].content == "broken \ufffd pair"


def test_previews_stop_at_the_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with create(tmp_path / "out") as run:
        assert run.wants_preview(PREVIEW_PAGES - 1)
        assert not run.wants_preview(PREVIEW_PAGES)
        monkeypatch.setattr("pagemill.store.run_directory.PREVIEW_BYTES", 10)
        run.write_page(page(0), preview=b"x" * 11)
        assert not run.wants_preview(1)
        run.write_page(page(1), preview=b"y")
        assert (run.preview("doc_0"), run.preview("doc_1")) == (b"x" * 11, None)


def test_no_report_keeps_no_previews(tmp_path: Path) -> None:
    exporters = Exporters(
        embedding_text=EXPORTERS.embedding_text,
        document_markdown=EXPORTERS.document_markdown,
        document_json=EXPORTERS.document_json,
    )
    with RunDirectory.create(tmp_path / "out", exporters=exporters) as run:
        assert not run.wants_preview(0)
        run.write_page(page(0), preview=b"x")
        run.finish()
    assert not (tmp_path / "out" / "report.html").exists()
    assert not (tmp_path / "out" / ".previews").exists()
