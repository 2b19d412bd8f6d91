"""``pagemill run`` given once more: what has nothing left to do starts no server. Linux."""

import shutil
import sys

import pytest
from run_pipeline import PAGES, Mill, draw_page
from test_bad_input_decoding import encrypted_pdf

from pagemill.errors import ExitCode

pytest.importorskip("aiohttp")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.integration,
    pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc"),
]


def served(mill: Mill) -> list[str]:
    """The models of all servers that were started, in order."""
    return [life["argv"][life["argv"].index("--served-model-name") + 1] for life in mill.world.lives()]


READER, EMBEDDER = "glm-ocr", "qwen3-vl-embedding-2b"


def test_what_is_done_starts_no_server_and_what_is_new_starts_one(mill: Mill):
    queries = ("--queries", str(mill.queries))
    assert mill.run(*mill.arguments(*queries)) == ExitCode.OK, mill.said
    assert served(mill) == [READER, EMBEDDER]
    assert mill.run(*mill.arguments(*queries)) == ExitCode.OK, mill.said
    assert served(mill) == [READER, EMBEDDER]
    assert f"[ocr] Nothing to do, and no server started: all {PAGES} pages are parsed." in mill.said
    assert "[embed] Nothing to do, and no server started: all " in mill.said
    draw_page(mill.scans / "later.png", 77)
    assert mill.run(*mill.arguments(*queries)) == ExitCode.OK, mill.said
    assert served(mill) == [READER, EMBEDDER] * 2
    mill.assert_all_read(PAGES + 1)
    mill.queries.write_text(mill.queries.read_text() + '{"query_id": "q2", "text": "And the weir?"}\n')
    assert mill.run(*mill.arguments(*queries)) == ExitCode.OK, mill.said
    assert served(mill) == [READER, EMBEDDER, READER, EMBEDDER, EMBEDDER]


def test_what_failed_needs_no_server_until_it_may_succeed(mill: Mill):
    (mill.scans / "torn.pdf").write_bytes(b"%PDF-1.7 and no more")
    (mill.scans / "torn.png").write_bytes((mill.scans / "page-0.png").read_bytes()[:200])
    (mill.scans / "locked.pdf").write_bytes(encrypted_pdf(b"sesame"))
    arguments = mill.arguments("--step", "ocr")
    for _ in range(2):
        assert mill.run(*arguments) == ExitCode.PAGES_FAILED, mill.said
    assert served(mill) == [READER]
    assert mill.run(*arguments, "--retry-failed") == ExitCode.PAGES_FAILED, mill.said
    assert served(mill) == [READER] * 2
    (mill.scans / "torn.pdf").unlink()  # then it is to be forgotten
    draw_page(mill.scans / "torn.png", 88)
    mill.more = {"PAGEMILL_PASSWORD": "sesame"}
    for _ in range(2):
        assert mill.run(*arguments) == ExitCode.OK, mill.said
    assert [record["status"] for record in mill.records()] == ["done"] * (PAGES + 2)
    assert served(mill) == [READER] * 3


def test_a_server_is_started_when_there_may_be_something_to_do(mill: Mill):
    records = mill.out / "ocr_results.jsonl"
    changes = {
        "the first time": lambda: None,
        "another content": lambda: draw_page(mill.scans / "page-3.png", 99),
        "a record is cut off": lambda: records.write_bytes(records.read_bytes()[:-10]),
        "no report": (mill.out / "report.html").unlink,
        "no run.json": (mill.out / "run.json").unlink,
        "no document": lambda: next((mill.out / "documents").glob("*.md")).unlink(),
    }
    for number, (change, make) in enumerate(changes.items(), start=1):
        make()
        assert mill.run(*mill.arguments("--step", "ocr")) == ExitCode.OK, mill.said
        assert served(mill) == [READER] * number, change
        mill.assert_all_read()
    assert mill.run(*mill.arguments("--step", "ocr", "--fresh")) == ExitCode.OK, mill.said
    assert served(mill) == [READER] * (len(changes) + 1)


def test_a_step_that_cannot_be_checked_is_not_done(mill: Mill):
    assert mill.run(*mill.arguments("--step", "ocr")) == ExitCode.OK, mill.said
    (mill.out / ".pagemill" / "run.sqlite").write_bytes(b"no database" * 1000)
    (mill.out / "ocr_results.jsonl").unlink()
    (mill.out / "run.json").write_text("{}")
    assert mill.run(*mill.arguments("--step", "ocr", "--resume")) == ExitCode.DAMAGED, mill.said
    assert served(mill) == [READER] * 2  # only opening the run tells whether it can be restored


def test_a_limit_is_heeded(mill: Mill):
    for limit, servers in ((2, 1), (2, 1), (3, 2)):
        assert mill.run(*mill.arguments("--step", "ocr", "--limit", str(limit))) == ExitCode.OK, mill.said
        assert len(mill.records()) == limit
        assert served(mill) == [READER] * servers


def test_other_settings_are_reported_before_a_server_is_started(mill: Mill):
    arguments = mill.arguments("--step", "ocr")
    embedding = mill.arguments("--step", "embed")
    assert mill.run(*arguments) == ExitCode.OK, mill.said
    for settings in (("--model", "deepseek-ocr"), ("--no-crops",)):
        assert mill.run(*arguments, *settings) == ExitCode.OUTPUT, mill.said
    assert mill.said.count("contains a run with other settings: ") == 2
    assert mill.run(*embedding, "--embedding-model", "ngram") == ExitCode.OK, mill.said
    assert mill.run(*embedding) == ExitCode.OUTPUT, mill.said
    assert "contains vectors of page texts made by " in mill.said
    assert served(mill) == [READER]
    for fresh in (("--fresh",), ()):  # the same answers to other crops: a second time there is nothing to do
        assert mill.run(*arguments, "--no-crops", *fresh) == ExitCode.OK, mill.said
    assert served(mill) == [READER] * 2


def test_an_input_that_is_not_there_is_reported_before_a_server_is_started(mill: Mill):
    shutil.rmtree(mill.scans)
    assert mill.run() == ExitCode.USAGE
    assert "does not exist" in mill.said
    assert not served(mill)
    assert not mill.out.exists()
