import json
import subprocess
from contextlib import ExitStack
from importlib.metadata import PackageNotFoundError

import pytest
from click.testing import CliRunner, Result
from local_web import Handler, serving

from pagemill.app import doctor
from pagemill.app.doctor import Area, CheckResult, Readiness, examine
from pagemill.cli.doctor import command
from pagemill.config.model_files import MODELS_VARIABLE
from pagemill.installation import install_extra
from pagemill.recognition.base import FormulaOffer
from pagemill.runtime import formula_reading
from pagemill.serving.command import VARIABLE


@pytest.fixture(autouse=True)
def nothing_installed(monkeypatch, tmp_path):
    """No model, no vLLM; probes are answered at once."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv(MODELS_VARIABLE, raising=False)
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    answer = subprocess.CompletedProcess([], 0, stdout="Apple GPU\n", stderr="")
    monkeypatch.setattr(doctor.subprocess, "run", lambda *args, **options: answer)


def found(area: Area, what: str, **options) -> CheckResult:
    return next(finding for finding in examine([area], **options) if finding.what == what)


def invoke(*words: str) -> Result:
    return CliRunner().invoke(command, words, catch_exceptions=False)


def test_every_area_can_be_looked_at():
    findings = list(examine(Area))
    assert {finding.area for finding in findings} == set(Area)
    assert all(finding.remedy for finding in findings if finding.verdict is not Readiness.OK)


@pytest.fixture
def no_packages(monkeypatch):
    def lacking(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(doctor, "version", lacking)


@pytest.mark.usefixtures("no_packages")
@pytest.mark.parametrize(
    ("area", "package", "verdict"),
    [
        ("vlm", "aiohttp", Readiness.MISSING),
        ("serve", "fastapi", Readiness.MISSING),
        ("mcp", "mcp", Readiness.MISSING),
        ("ray", "ray", Readiness.MISSING),
        ("embed", "sentence-transformers", Readiness.WARNING),  # vectors also come from a server or the embedded engine
    ],
)
def test_a_missing_package_names_its_extra(area, package, verdict):
    finding = found(Area(area), package)
    assert (finding.verdict, finding.remedy) == (verdict, f"Install it: {install_extra(area)}")


def test_who_reads_the_formulas_of_scans(monkeypatch):
    offers = [FormulaOffer(name="reader", create=list)]
    monkeypatch.setattr(formula_reading, "formula_offers", lambda: offers)
    assert found(Area.PARSE, "formulas").detail == "in scans read by reader"
    offers.clear()
    finding = found(Area.PARSE, "formulas")
    assert (finding.verdict, finding.remedy) == (Readiness.WARNING, "pagemill models download cpu-best")


def test_a_probe_that_hangs(monkeypatch):
    def hang(*args, **options):
        raise subprocess.TimeoutExpired("python", 60)

    monkeypatch.setattr(doctor.subprocess, "run", hang)
    assert found(Area.PARSE, "embedded engines").verdict is Readiness.MISSING


@pytest.fixture
def answering():
    """Starts a server that gives one answer to everything; returns its URL and the requests that it gets."""
    with ExitStack() as servers:

        def start(status: int, content: bytes) -> tuple[str, list[tuple[str, str | None]]]:
            asked = []

            class Always(Handler):
                def do_GET(self):
                    asked.append((self.path, self.headers["Authorization"]))
                    self.answer(status, content)

            return servers.enter_context(serving(Always)).url, asked

        yield start


@pytest.mark.parametrize("written", ["{}", "{}/", "{}/v1"])
def test_a_server_lists_its_models(answering, monkeypatch, written):
    monkeypatch.setenv("PAGEMILL_API_KEY", "secret")
    url, asked = answering(200, json.dumps({"data": [{"id": "glm-ocr"}]}).encode())
    for given in (written.format(url), written.format(url).removeprefix("http://")):
        finding = found(Area.VLM, url, servers=[given])
        assert (finding.verdict, finding.detail) == (Readiness.OK, "serves glm-ocr")
    assert asked == [("/v1/models", "Bearer secret")] * 2


@pytest.mark.parametrize("content", [b"<html>", b"[]", b'{"data": 3}', b'{"data": [3]}', b"[" * 100_000])
def test_what_is_no_model_server(answering, content):
    url, _ = answering(200, content)
    assert "not an OpenAI-compatible server" in found(Area.VLM, url, servers=[url]).detail


def test_a_server_that_refuses(answering):
    url, _ = answering(401, b"")
    assert "PAGEMILL_API_KEY" in (found(Area.VLM, url, servers=[url]).remedy or "")


def test_a_password_in_the_url_is_refused_and_not_printed():
    finding = found(Area.VLM, "server", servers=["http://user:password@h:1"])
    assert "PAGEMILL_API_KEY" in (finding.remedy or "")
    assert "password@" not in finding.detail


def test_a_closed_port():
    finding = found(Area.VLM, "http://127.0.0.1:1", servers=["http://127.0.0.1:1"])
    assert finding.verdict is Readiness.MISSING
    assert "cannot be reached" in finding.detail


def test_only_named_areas_must_be_complete():
    assert invoke().exit_code == 0
    assert invoke("serve-model").exit_code == 6
    assert invoke("--server", "http://127.0.0.1:1").exit_code == 6


def test_without_an_area_nothing_is_missing_that_nobody_asked_for():
    printed = invoke().stdout
    ready, optional = printed.split("\nOptional\n")
    assert ready.startswith("Ready\nmachine: ")
    assert "MISSING" not in printed
    assert "serve-model: start model servers on this machine" in optional
    assert "  -        vLLM: vLLM is not installed\n" in optional
    assert "MISSING  vLLM" in invoke("serve-model").stdout


def test_what_parsing_needs_is_missing_without_an_area(monkeypatch):
    answer = subprocess.CompletedProcess([], 1, stdout="", stderr="Traceback\nImportError: libGL.so.1\n")
    monkeypatch.setattr(doctor.subprocess, "run", lambda *args, **options: answer)
    ended = invoke()
    assert ended.exit_code == 6
    ready, missing = ended.stdout.split("\nMissing\n")
    assert "libGL" not in ready
    assert "MISSING  embedded engines: ImportError: libGL.so.1" in missing


@pytest.mark.usefixtures("no_packages")
def test_one_command_that_installs_several_is_printed_once(monkeypatch):
    monkeypatch.setattr(doctor, "find_spec", lambda name: None)
    printed = invoke("gpu").stdout
    assert printed.count(install_extra("gpu")) == 1
    assert "accelerator" not in printed  # there is nothing to ask yet


def test_json():
    listed = json.loads(invoke("serve-model", "--json").stdout)
    assert {row["area"] for row in listed} == {"serve-model"}
    assert any(row["verdict"] == "missing" and row["remedy"] for row in listed)


def test_an_address_without_sense():
    assert found(Area.VLM, "server", servers=["http://h:99999"]).verdict is Readiness.MISSING


def test_publishing_needs_a_token(monkeypatch):
    import huggingface_hub

    monkeypatch.setattr(huggingface_hub, "get_token", lambda: None)
    assert found(Area.PUBLISH, "login").verdict is Readiness.MISSING
    monkeypatch.setattr(huggingface_hub, "get_token", lambda: "t")
    assert found(Area.PUBLISH, "login").verdict is Readiness.OK
