"""Options for reading with a model: what they stand for, and which do not go together."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from pagemill.cli import cli
from pagemill.cli.recognition_options import recognition_settings
from pagemill.config.modes import ReadingMode, TextLayerMode
from pagemill.config.settings import RecognitionSettings
from pagemill.errors import UsageError

NOTHING = {
    "recognition_engine": "lines",
    "model": None,
    "servers": (),
    "reading": None,
    "footnotes": None,
    "served_model": None,
    "workers": None,
    "request_timeout": None,
    "server_wait": None,
}


def test_without_options_lines_are_read():
    settings = recognition_settings(**NOTHING)
    assert settings == RecognitionSettings()
    assert (settings.reads_regions, settings.text_layer) == (False, TextLayerMode.AUTO)


def test_all_options_arrive():
    settings = recognition_settings(
        recognition_engine="vlm",
        model="paddleocr-vl",
        servers=("http://a:1", "http://b:2", "https://c"),
        reading="pages",
        footnotes=False,
        served_model="mine",
        workers=8,
        request_timeout=60.0,
        server_wait=30.0,
    )
    assert settings == RecognitionSettings(
        engine="vlm",
        model="paddleocr-vl",
        servers=("http://a:1", "http://b:2", "https://c"),
        reading=ReadingMode.PAGES,
        footnotes=False,
        served_model="mine",
        workers=8,
        request_timeout_s=60.0,
        server_wait_s=30.0,
    )
    assert (settings.reads_regions, settings.text_layer) == (True, TextLayerMode.NEVER)


def test_an_engine_of_another_package_needs_no_server():
    assert recognition_settings(**{**NOTHING, "recognition_engine": "mine"}).engine == "mine"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--server", "http://a"], "--server goes with a model"),
        (["--reading", "pages"], "--reading goes with a model"),
        (["--model", "glm-ocr", "--workers", "3"], "--model and --workers go with a model"),
        (["--recognition-engine", "vlm"], "needs --server URL"),
        (["--recognition-engine", "vlm", "--server", " , "], "needs --server URL"),
        (["--recognition-engine", "vlm", "--server", "http://a", "--lang", "ko"], "--lang is for reading lines"),
        (["--recognition-engine", "vlm", "--server", "http://a", "--workers", "0"], "--workers"),
        (["--recognition-engine", "vlm", "--server", "http://a", "--request-timeout", "0"], "--request-timeout"),
    ],
)
def test_what_does_not_go_together_is_refused_before_anything_is_begun(options, said, tmp_path: Path):
    ended = CliRunner().invoke(cli, ["parse", "a.pdf", "-o", str(tmp_path / "out"), *options])
    assert ended.exit_code == 2
    assert said in ended.output
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("url", ["127.0.0.1:8000", "localhost", "ftp://a", "http://", "file:///etc/passwd", ""])
def test_a_server_has_a_url(url: str):
    with pytest.raises(UsageError, match="is no URL of a server"):
        RecognitionSettings(engine="vlm", servers=(url,))


@pytest.mark.parametrize(
    "settings",
    [{"request_timeout_s": 0.0}, {"server_wait_s": float("nan")}, {"request_timeout_s": -1.0}, {"workers": -1}],
)
def test_limits_are_numbers_over_zero(settings):
    with pytest.raises(UsageError):
        RecognitionSettings(**settings)


def test_what_a_model_is_given_may_be_a_plain_word():
    assert RecognitionSettings(reading="pages").reading is ReadingMode.PAGES
    with pytest.raises(UsageError, match="regions or pages, not 'words'"):
        RecognitionSettings(reading="words")
