"""PDFs whose page tree lies, and PDFs that only a repaired copy makes readable."""

import gc
import io
import tempfile
from pathlib import Path

import pikepdf
import pypdfium2 as pdfium
import pytest
from decoding_run import run
from made_pdfs import PAGE, page_tree, pages

from pagemill.errors import ExitCode
from pagemill.sources import PageRanges

pytestmark = pytest.mark.integration

LIARS = {
    "none-there": page_tree("", 1_000_000),
    "cycle": page_tree("2 0 R", 1_000_000),
    "long-cycle": page_tree("4 0 R", 1_000_000, b"<</Type/Pages/Kids[2 0 R]/Parent 2 0 R/Count 1000000>>"),
    "missing-objects": page_tree("97 0 R 98 0 R 99 0 R", 3),
}


@pytest.mark.slow
def test_documents_without_pages_fail_once_each(tmp_path: Path):
    for name, data in LIARS.items():
        (tmp_path / f"{name}.pdf").write_bytes(data)
    for _ in range(2):
        ended = run(tmp_path / "out", tmp_path)
        assert (ended.exit_code, ended.done) == (ExitCode.INPUT, [])
        assert ended.failed.keys() == LIARS.keys()
        for name, message in ended.failed.items():
            assert f"{name}.pdf: " in message
            assert ("1,000,000" in message) == (name != "missing-objects")


@pytest.mark.slow
def test_pages_that_are_there_are_read_and_one_failure_stands_for_the_others(tmp_path: Path):
    path = tmp_path / "liar.pdf"
    for announced in (4, 1_000_000):
        path.write_bytes(page_tree("3 0 R 4 0 R 3 0 R", announced, PAGE))
        for _ in range(2):
            ended = run(tmp_path / f"out-{announced}", path)
            assert ended.exit_code is ExitCode.PAGES_FAILED
            assert ended.done == ["liar_1", "liar_2", "liar_3"]
            assert f"announces {announced:,} pages, but only 3" in ended.failed["liar"]
            assert ended.missing == announced - 3
    assert run(tmp_path / "few", path, limit=2).exit_code is ExitCode.OK
    ended = run(tmp_path / "last", path, pages=PageRanges.parse("3-4"))
    assert (ended.done, ended.missing) == (["liar_3"], 1)


@pytest.mark.slow
def test_a_cycle_behind_real_pages_costs_none_of_them(tmp_path: Path):
    path = tmp_path / "cycle.pdf"
    path.write_bytes(page_tree("3 0 R 4 0 R 3 0 R", 1_000_000, b"<</Type/Pages/Kids[3 0 R 2 0 R]/Count 1000000>>"))
    ended = run(tmp_path / "out", path)
    assert ended.done == ["cycle_1", "cycle_2", "cycle_3"]
    assert list(ended.failed) == ["cycle"]
    assert "qpdf" in next(r["errors"][0]["message"] for r in ended.records if r["status"] == "done")


@pytest.mark.slow
def test_pages_behind_broken_ones_are_read(tmp_path: Path):
    path = tmp_path / "hole.pdf"
    path.write_bytes(page_tree(f"3 0 R {'99 0 R ' * 300}3 0 R 98 0 R", 303))
    ended = run(tmp_path / "out", path)
    assert ended.done == ["hole_1", "hole_302"]
    assert len(ended.failed) == 301
    assert len(ended.done) + ended.missing == 303


def refused(path: Path) -> bool:
    try:
        pdfium.PdfDocument(path).close()
    except pdfium.PdfiumError:
        return True
    return False


def test_what_only_qpdf_opens_is_read_and_its_record_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A PDF without trailer; PDFium looks for one, qpdf for the catalogue."""
    path = tmp_path / "torn.pdf"
    path.write_bytes(pages(2).split(b"trailer")[0])
    assert refused(path)
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    ended = run(tmp_path / "out", path)
    assert (ended.exit_code, ended.done) == (ExitCode.PAGES_FAILED, ["torn_1", "torn_2"])
    for record in ended.records:
        [warning] = record["errors"]
        assert (warning["category"], "qpdf 1" in warning["message"]) == ("repaired", True)
    gc.collect()
    assert not list((tmp_path / "tmp").iterdir())  # the copy goes with the last reference to a page of it
    assert run(tmp_path / "out", path).records == ended.records


@pytest.mark.slow
def test_pages_that_a_repaired_copy_lacks_are_missing(tmp_path: Path):
    path = tmp_path / "cut.pdf"
    data = pages(5)
    path.write_bytes(data[: data.index(b"6 0 obj") + 9])  # the fourth page and what follows
    assert refused(path)
    ended = run(tmp_path / "out", path)
    assert ended.done == ["cut_1", "cut_2", "cut_3"]
    assert "announces 5 pages, but only 3" in ended.failed["cut"]
    assert ended.missing == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("revision", "there", "instead"),
    [
        (3, b"/Length 128", b"/Xength 128"),  # a key length that must be guessed
        (3, b"/Length 128", b"/Length 016"),  # in bytes, where it should be bits
        (4, b"/StrF /StdCF", b"/StrF /Identity"[:12]),  # strings that are not encrypted
        (6, b"/P -", b"/P 4"),  # permissions that do not fit the checksum
    ],
)
def test_an_empty_user_password_that_only_qpdf_accepts_needs_none(
    tmp_path: Path, revision: int, there: bytes, instead: bytes
):
    path = tmp_path / "protected.pdf"
    how = {"aes": False, "metadata": False} if revision < 4 else {}
    with pikepdf.open(io.BytesIO(pages(2))) as document:
        document.save(path, encryption=pikepdf.Encryption(owner="master", user="", R=revision, **how))
    data = path.read_bytes()
    assert there in data
    path.write_bytes(data.replace(there, instead))
    assert refused(path)
    for password in (None, "not its own"):
        ended = run(tmp_path / f"out-{password}", path, password=password)
        assert (ended.exit_code, ended.done) == (ExitCode.OK, ["protected_1", "protected_2"])
        assert all("qpdf" in record["metadata"]["notes"][0] for record in ended.records)


@pytest.mark.slow
def test_what_cannot_be_repaired_reports_the_attempt(tmp_path: Path):
    path = tmp_path / "noise.pdf"
    path.write_bytes(b"%PDF-1.4\n" + b"noise " * 100)
    ended = run(tmp_path / "out", path)
    assert ended.exit_code is ExitCode.INPUT
    assert "qpdf cannot repair it" in ended.failed["noise"]
    assert str(tmp_path) in ended.failed["noise"]
    assert "pagemill-" not in ended.failed["noise"]


@pytest.mark.slow
def test_a_locked_file_is_still_locked(tmp_path: Path):
    path = tmp_path / "locked.pdf"
    with pikepdf.open(io.BytesIO(pages(2))) as document:
        document.save(path, encryption=pikepdf.Encryption(user="sesame", owner="master"))
    ended = run(tmp_path / "out", path)
    assert (ended.exit_code, list(ended.failed)) == (ExitCode.ENCRYPTED, ["locked"])
    assert run(tmp_path / "out", path, password="sesame").exit_code is ExitCode.OK


def test_an_entry_of_the_page_tree_that_is_no_page_costs_no_other(tmp_path: Path):
    for count in (2, 3, 4):
        (tmp_path / f"kids{count}.pdf").write_bytes(page_tree("3 0 R 99 0 R 4 0 R 5 0 R", count, PAGE, PAGE))
    ended = run(tmp_path / "out", tmp_path)
    for count in (2, 3, 4):
        assert len([page for page in ended.done if page.startswith(f"kids{count}_")]) == 3
        assert len([page for page in ended.failed if page.startswith(f"kids{count}")]) == 1
    assert ended.missing == 3
