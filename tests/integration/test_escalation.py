"""``--escalate``: a scan whose regions a stub reads again; a run that is repeated asks nothing more."""

import json
from pathlib import Path

import pypdfium2 as pdfium
import pytest
from parse_command import parse, records
from stub_process import StubProcess

from pagemill.errors import ExitCode

pytestmark = [pytest.mark.slow, pytest.mark.integration]
SAMPLES = Path(__file__).parents[2] / "samples"


@pytest.fixture(scope="module")
def scan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("inputs") / "scan.pdf"
    with pdfium.PdfDocument.new() as document, pdfium.PdfDocument(SAMPLES / "report-scan.pdf") as sample:
        document.import_pages(sample, pages=[0])
        width, height = document[0].get_size()
        document[0].set_mediabox(0, height / 2, width, height)  # its upper half
        document.save(path)
    return path


def test_regions_are_read_again_once_and_invented_text_is_not_kept(scan: Path, tmp_path: Path) -> None:
    with StubProcess("--model", "glm-ocr", "--text", "nothing of the kind stands on this page at all") as stub:
        words = (scan, "-o", tmp_path / "out", "--lang", "en", "--escalate", "vlm", "--server", stub.url)
        done = parse(*words, "--escalate-from", "0")
        assert done.returncode == ExitCode.OK, done.stderr
        asked = stub.counts()["requests"]
        (record,) = records(tmp_path / "out")
        again = [region for region in record["regions"] if region["other_engine"] == "vlm:glm-ocr"]
        assert len(again) >= 5 and asked >= len(again)
        assert all(region["engine"] == "rapidocr" and region["lines"] for region in again)
        assert record["confidence"] > 0.95
        assert parse(*words, "--escalate-from", "0").returncode == ExitCode.OK
        assert stub.counts()["requests"] == asked
        refused = parse(*words, "--escalate-from", "3")
        assert refused.returncode == ExitCode.OUTPUT and "escalate_from" in refused.stderr
    settings = json.loads((tmp_path / "out" / "run.json").read_text())["settings"]["parse"]["recognition"]
    assert (settings["engine"], settings["escalate"]) == ("lines", "vlm")


def test_without_a_server_a_run_does_not_start(scan: Path, tmp_path: Path) -> None:
    done = parse(scan, "-o", tmp_path / "out", "--escalate", "vlm", "--server", "http://127.0.0.1:9")
    assert done.returncode == ExitCode.NETWORK, done.stderr
    assert not (tmp_path / "out").exists()
