from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from pagemill.cli import cli, config_file
from pagemill.errors import UsageError


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments, catch_exceptions=False, standalone_mode=False)


def defaults(text: str, *, explicit: bool = False) -> dict[str, object]:
    path = Path("pagemill.toml")
    path.write_text(text, encoding="utf-8")
    return config_file.defaults(path, config_file.load(path), cli, explicit=explicit)  # type: ignore[arg-type]


def test_options_are_named_as_on_the_command_line():
    found = defaults(
        '[parse]\nlang = ["ko", "en"]\noutput = "o"\ncrops = false\npage_timeout = 5\n[models.download]\nto = "m"\n'
    )
    assert found == {
        "parse": {"languages": "ko,en", "output": "o", "crops": False, "page_timeout_s": 5},
        "models": {"download": {"folder": "m"}},
    }


@pytest.mark.parametrize(
    ("text", "message", "remedy"),
    [
        ("[parse]\nlangs = 'ko'", r"\[parse\] langs: there is no such option", "Did you mean lang?"),
        ("[prase]\nlang = 'ko'", r"\[prase\]: there is no such command", "Did you mean parse?"),
        ("parse = 1", "parse is not a table", "Write its options"),
        ("[parse]\ncrops = 'no'", "crops is 'no'", "true, false"),
        ("[parse]\nlang = {a = 1}", "lang is", ""),
        ("[parse]\ntrust-remote-code = 'm'", "runs code", "--config pagemill.toml"),
        ("[parse", "cannot be read", "Correct it"),
    ],
)
def test_what_is_wrong_is_refused_with_a_remedy(text: str, message: str, remedy: str):
    with pytest.raises(UsageError, match=message) as caught:
        defaults(text)
    assert remedy in (caught.value.remedy or "")


def test_a_file_that_is_named_may_run_code():
    assert defaults("[parse]\ntrust-remote-code = 'm'", explicit=True) == {"parse": {"trust_remote_code": "m"}}


def test_the_command_line_goes_before_the_file(here: Path, monkeypatch: pytest.MonkeyPatch):
    Path("pagemill.toml").write_text('[doctor]\njson = true\nserver = "http://h:1"\n', encoding="utf-8")
    seen = {}

    @click.command(name="doctor")
    @click.option("--json", "as_json", is_flag=True)
    @click.option("--server", "servers", multiple=True)
    def command(**given: object) -> None:
        seen.update(given)

    monkeypatch.setattr("pagemill.cli.doctor.command", command)
    result = invoke("doctor")
    assert seen == {"as_json": True, "servers": ("http://h:1",)}
    assert result.stderr == "Note: options from pagemill.toml.\n"
    monkeypatch.setenv("PAGEMILL_NO_CONFIG", "1")
    assert invoke("doctor").stderr == ""
    assert seen == {"as_json": False, "servers": ()}
    monkeypatch.delenv("PAGEMILL_NO_CONFIG")
    invoke("doctor", "--server", "http://mine")
    assert seen["servers"] == ("http://mine",)
    (here / "other.toml").write_text("", encoding="utf-8")
    assert invoke("--config", "other.toml", "doctor").stderr == ""
    assert seen == {"as_json": False, "servers": ()}


def test_config_shows_the_file_without_secrets():
    assert "There is no pagemill.toml" in invoke("config").output
    Path("pagemill.toml").write_text('[parse]\npassword = "sesame"\nlang = "ko"\n', encoding="utf-8")
    assert invoke("config").output == '# pagemill.toml\n[parse]\npassword = "(hidden)"\nlang = "ko"\n'
    text = '[publish]\nhf_token = "hf_x"\n[models.download]\nto = "m"\n[serve]\napi-key = ["k"]\n'
    Path("pagemill.toml").write_text(text, encoding="utf-8")
    shown = text.replace('"hf_x"', '"(hidden)"').replace('["k"]', '"(hidden)"')
    assert invoke("config").output == f"# pagemill.toml\n{shown}"


def test_the_version_and_completion_scripts():
    assert invoke("-V").output.startswith("pagemill, version ")
    assert "_PAGEMILL_COMPLETE=fish_complete" in invoke("completion", "fish").output
    assert "#compdef pagemill" in invoke("completion", "zsh").output


@pytest.mark.parametrize(
    "line",
    [
        '[serve-model]\nvllm = "./vllm"',
        "[serve]\ninsecure = true",
        '[parse]\nray = "h:1"',
        '[parse]\nserver = "http://h:1"',
    ],
)
def test_a_folder_decides_nothing_about_trust(here: Path, monkeypatch: pytest.MonkeyPatch, line: str):
    monkeypatch.setenv("PAGEMILL_API_KEY", "key")
    Path("pagemill.toml").write_text(line, encoding="utf-8")
    command = line[1 : line.index("]")]
    with pytest.raises(UsageError, match=r"runs code|opens the server|joins a cluster|gets the key") as caught:
        invoke(command, *["x.pdf"] * (command == "parse"))
    assert "--config pagemill.toml" in str(caught.value.remedy)


def test_a_number_is_not_on_or_off(here: Path):
    Path("pagemill.toml").write_text("[parse]\nlimit = true", encoding="utf-8")
    with pytest.raises(UsageError, match="limit is True"):
        invoke("parse", "x.pdf")
