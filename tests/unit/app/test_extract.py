import json
from pathlib import Path

import pytest
from extraction_pages import INVOICE
from synthetic_run import failed_page, page, region, write_run

from pagemill.app import extract as app
from pagemill.app.extract import ExtractOptions, ExtractOutcome, extract, read_results, results_folder
from pagemill.app.options import ImageSources
from pagemill.config.recognition import RecognitionSettings
from pagemill.document.labels import Label
from pagemill.errors import ExitCode, NetworkError, UsageError
from pagemill.extraction.result import ExtractionStatus
from pagemill.extraction.schema import ExtractionSchema
from pagemill_bench.testing.stub_server import StubServer, StubSettings

SCHEMA = ExtractionSchema("invoice", INVOICE)
TEXT_ONLY = ExtractOptions(images=False)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Three documents, one of which failed."""
    bill = page("bill", 1, [region(0, Label.TEXT, "Invoice INV-7 Total 12.50 Due 5 May")])
    other = page("other", 1, [region(0, Label.TEXT, "Invoice INV-8")])
    write_run(tmp_path / "run", [bill, other, failed_page("broken", 1)])
    return tmp_path / "run"


def model(url: str) -> RecognitionSettings:
    return RecognitionSettings(model="generic", servers=(url,))


async def extracted(out: Path, text: str, options: ExtractOptions = TEXT_ONLY) -> tuple[ExtractOutcome, dict]:
    async with StubServer(StubSettings(text=text, by_prompt={"INV-8": "no JSON at all"})) as server:
        outcome = await extract(out, SCHEMA, model(server.url), options, ImageSources())
    return outcome, {result.doc_id: result for result in read_results(results_folder(out, SCHEMA))}


GOOD = json.dumps({"number": "INV-7", "total": 12.5, "due": "5 May"})


async def test_one_failure_costs_no_other_document(out: Path):
    outcome, results = await extracted(out, GOOD)
    assert outcome.results == {
        "bill": ExtractionStatus.DONE, "other": ExtractionStatus.FAILED, "broken": ExtractionStatus.FAILED
    }  # fmt: skip
    assert outcome.exit_code == ExitCode.PAGES_FAILED
    assert results["bill"].values == json.loads(GOOD)
    assert results["other"].problems[0].category == "invalid_json"
    assert (results["broken"].problems[0].category, results["broken"].requests) == ("timeout", [])
    assert json.loads((out / "extracted" / "invoice.schema.json").read_text()) == INVOICE


async def test_images_that_are_gone_leave_the_text(out: Path):
    outcome, results = await extracted(out, GOOD, ExtractOptions())
    assert results["bill"].values == json.loads(GOOD)
    assert (results["bill"].status, results["bill"].problems[0].category) == ("incomplete", "no_image")
    assert outcome.exit_code == ExitCode.PAGES_FAILED


async def test_an_unexpected_error_is_of_one_document(out: Path, monkeypatch):
    def explode(index, shown):
        if shown.doc_id == "bill":
            raise ZeroDivisionError
        return original(index, shown)

    original = app.PageText
    monkeypatch.setattr(app, "PageText", explode)
    outcome, results = await extracted(out, GOOD)
    assert outcome.results["bill"] is ExtractionStatus.FAILED
    assert results["bill"].problems[0].category == "internal"
    assert results["other"].problems[0].category == "invalid_json"


@pytest.mark.parametrize("step", ["assembled", "_encoded"])
async def test_an_error_after_the_answers_is_of_one_document(out: Path, monkeypatch, step: str):
    def explode(*given, **others):
        if "bill" in given or getattr(given[0], "values", None):
            monkeypatch.setattr(app, step, original)
            raise OverflowError("int too large")
        return original(*given, **others)

    original = getattr(app, step)
    monkeypatch.setattr(app, step, explode)
    outcome, results = await extracted(out, GOOD)
    assert (results["bill"].status, results["bill"].problems[0].category) == ("failed", "internal")
    assert results["other"].problems[0].category == "invalid_json"
    assert outcome.exit_code == ExitCode.PAGES_FAILED


async def test_values_on_no_page_count_with_strict(tmp_path: Path):
    write_run(tmp_path / "run", [page("bill", 1, [region(0, Label.TEXT, "Invoice INV-7 Due 5 May")])])
    for strict, status in ((False, ExitCode.OK), (True, ExitCode.PAGES_FAILED)):
        options = ExtractOptions(images=False, strict=strict)
        outcome, _ = await extracted(tmp_path / "run", GOOD, options)
        assert (outcome.unfounded, outcome.exit_code) == (1, status)


async def test_no_server(out: Path):
    with pytest.raises(UsageError, match="needs a model"):
        await extract(out, SCHEMA, RecognitionSettings(), TEXT_ONLY, ImageSources())
    with pytest.raises(NetworkError):
        await extract(out, SCHEMA, model("http://127.0.0.1:9"), TEXT_ONLY, ImageSources())
    assert not (out / "extracted").exists()


async def test_a_server_that_dies_costs_no_earlier_results(out: Path, monkeypatch):
    await extracted(out, GOOD)
    earlier = {path.name: path.read_bytes() for path in results_folder(out, SCHEMA).iterdir()}

    async def dies(*_):
        raise NetworkError("the server went away")

    monkeypatch.setattr(app.ValueReader, "read", dies)
    with pytest.raises(NetworkError):
        await extracted(out, "{}")
    assert {path.name: path.read_bytes() for path in results_folder(out, SCHEMA).iterdir()} == earlier
    assert [path.name for path in sorted(out.joinpath("extracted").iterdir())] == ["invoice", "invoice.schema.json"]
