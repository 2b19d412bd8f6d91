import json
import subprocess
from importlib.metadata import PackageNotFoundError

import pytest
from click.testing import CliRunner

from pagemill.app import doctor
from pagemill.app.doctor import Area, Finding, Verdict, examine
from pagemill.cli.doctor import command
from pagemill.config.model_files import MODELS_VARIABLE
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


def found(area: Area, what: str, **options) -> Finding:
    return next(finding for finding in examine([area], **options) if finding.what == what)


def test_every_area_can_be_looked_at():
    findings = list(examine(Area))
    assert {finding.area for finding in findings} == set(Area)
    assert all(finding.remedy for finding in findings if finding.verdict is not Verdict.OK)


def test_a_missing_package_names_its_extra(monkeypatch):
    def lacking(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(doctor, "version", lacking)
    finding = found(Area.VLM, "aiohttp")
    assert (finding.verdict, finding.remedy) == (Verdict.MISSING, "pip install 'pagemill[vlm]'")
    assert found(Area.EMBED, "sentence-transformers").verdict is Verdict.OK


def test_an_engine_that_does_not_load(monkeypatch):
    answer = subprocess.CompletedProcess([], 1, stdout="", stderr="Traceback\nImportError: libGL.so.1\n")
    monkeypatch.setattr(doctor.subprocess, "run", lambda *args, **options: answer)
    finding = found(Area.PARSE, "embedded engines")
    assert (finding.verdict, finding.detail) == (Verdict.MISSING, "ImportError: libGL.so.1")


def test_a_probe_that_hangs(monkeypatch):
    def hang(*args, **options):
        raise subprocess.TimeoutExpired("python", 60)

    monkeypatch.setattr(doctor.subprocess, "run", hang)
    assert found(Area.PARSE, "embedded engines").verdict is Verdict.MISSING


@pytest.fixture
def answering(monkeypatch):
    """Makes servers give an answer; tells what they were asked."""
    asked = []

    def use(status: int, content: bytes):
        class Connection:
            def __init__(self, host, port, timeout):
                asked.append((host, port))

            def request(self, method, path, headers):
                asked.append((path, headers))

            def getresponse(self):
                return self

            def read(self, limit):
                return content[:limit]

            def close(self):
                asked.append("closed")

        Connection.status = status
        monkeypatch.setattr(doctor.http.client, "HTTPConnection", Connection)
        return asked

    return use


@pytest.mark.parametrize("url", ["http://h:8000", "http://h:8000/", "http://h:8000/v1", "h:8000"])
def test_a_server_tells_its_models(answering, monkeypatch, url):
    monkeypatch.setenv("PAGEMILL_API_KEY", "secret")
    asked = answering(200, json.dumps({"data": [{"id": "glm-ocr"}]}).encode())
    finding = found(Area.VLM, "http://h:8000", servers=[url])
    assert (finding.verdict, finding.detail) == (Verdict.OK, "serves glm-ocr")
    assert asked == [("h", 8000), ("/v1/models", {"Authorization": "Bearer secret"}), "closed"]


@pytest.mark.parametrize("content", [b"<html>", b"[]", b'{"data": 3}', b'{"data": [3]}', b"[" * 100_000])
def test_what_is_no_model_server(answering, content):
    answering(200, content)
    assert "no OpenAI-compatible" in found(Area.VLM, "http://h:1", servers=["http://h:1"]).detail


def test_a_server_that_refuses(answering):
    answering(401, b"")
    assert "PAGEMILL_API_KEY" in (found(Area.VLM, "http://h:1", servers=["http://user:password@h:1"]).remedy or "")


def test_a_closed_port():
    finding = found(Area.VLM, "http://127.0.0.1:1", servers=["http://127.0.0.1:1"])
    assert finding.verdict is Verdict.MISSING
    assert "does not answer" in finding.detail


def test_only_named_areas_must_be_complete():
    assert CliRunner().invoke(command, [], catch_exceptions=False).exit_code == 0
    assert CliRunner().invoke(command, ["serve"], catch_exceptions=False).exit_code == 6
    assert CliRunner().invoke(command, ["--server", "http://127.0.0.1:1"], catch_exceptions=False).exit_code == 6


def test_json():
    listed = json.loads(CliRunner().invoke(command, ["serve", "--json"], catch_exceptions=False).stdout)
    assert {row["area"] for row in listed} == {"serve"}
    assert any(row["verdict"] == "missing" and row["remedy"] for row in listed)


def test_an_address_without_sense():
    assert found(Area.VLM, "server", servers=["http://h:99999"]).verdict is Verdict.MISSING


def test_publishing_needs_a_token(monkeypatch):
    import huggingface_hub

    monkeypatch.setattr(huggingface_hub, "get_token", lambda: None)
    assert found(Area.PUBLISH, "login").verdict is Verdict.MISSING
    assert found(Area.PUBLISH, "login", token="t").verdict is Verdict.OK
