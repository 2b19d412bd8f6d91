from pathlib import Path

import pytest

from pagemill.app import parse_process
from pagemill.app.options import DirectoryOptions, ParseOptions
from pagemill.app.parse_process import ParsingStoppedError, parse_inputs
from pagemill.config.options import build
from pagemill.errors import ExitCode


class Child:
    """In place of ``subprocess.Popen``."""

    status: int = 0
    command: list[str]
    given: dict

    def __init__(self, command, **given):
        type(self).command, type(self).given = command, given

    def wait(self):
        return self.status


@pytest.fixture
def child(monkeypatch) -> type[Child]:
    kind = type("OneChild", (Child,), {})
    monkeypatch.setattr(parse_process.subprocess, "Popen", kind)
    return kind


def parse(values: dict | None = None) -> int:
    options = build(ParseOptions, values or {})
    return parse_inputs(["-a.pdf", Path("b")], Path("out"), options, DirectoryOptions(report=False), quiet=True)


def test_the_options_are_passed_on_without_secrets_and_without_those_of_another_model(child):
    given = {"languages": ("ko", "en"), "password": "hush", "servers": ("http://h:1",), "model": "generic"}
    assert parse(given) == 0
    words = child.command[child.command.index("parse") :]
    assert words[:4] == ["parse", "-o", "out", "--lang"]
    assert words[words.index("--lang") + 1] == "ko,en"
    assert words[-3:] == ["--", "-a.pdf", "b"]
    assert "--no-report" in words
    assert not {"hush", "--server", "--model"} & {*words}
    assert child.given["env"]["PAGEMILL_PASSWORD"] == "hush"
    assert child.given["stdout"] == 2


def test_with_a_model_its_server_is_passed_on(child):
    parse({"recognition_engine": "vlm", "servers": ("http://h:1",)})
    assert child.command[child.command.index("--server") + 1] == "http://h:1"


@pytest.mark.parametrize(
    ("status", "code"),
    [(8, ExitCode.OUTPUT), (7, ExitCode.LANGUAGE), (130, ExitCode.INTERRUPTED), (-9, ExitCode.CRASH)],
)
def test_a_run_that_is_not_finished(child, status, code):
    child.status = status
    with pytest.raises(ParsingStoppedError) as caught:
        parse()
    assert caught.value.exit_code == code


def test_failed_pages_stop_nothing(child):
    child.status = int(ExitCode.PAGES_FAILED)
    assert parse() == 3


@pytest.mark.parametrize(
    ("described_by", "expected"),
    [
        ({}, ["http://h:1", "glm-ocr", "served"]),
        ({"describe_model": "qwen3-vl-8b"}, ["http://h:1", "qwen3-vl-8b", None]),
        ({"describe_servers": ("http://d:2",)}, ["http://d:2", None, None]),
    ],
)
def test_the_server_of_another_step_describes_where_no_other_is_named(child, described_by, expected):
    given = {"describe": ("figures",), "servers": ("http://h:1",), "model": "glm-ocr", "served_model": "served"}
    parse(given | described_by)
    flags = ("--describe-server", "--describe-model", "--describe-served-model")
    words = child.command
    assert [words[words.index(flag) + 1] if flag in words else None for flag in flags] == expected
    assert not {"--server", "--model", "--served-model"} & {*words}
