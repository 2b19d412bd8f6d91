"""Files whose hash is known, from a server on this machine."""

import errno
import hashlib
import io
import socket
from pathlib import Path
from ssl import SSLError
from urllib.error import HTTPError, URLError

import numpy as np
import pytest
from click.testing import CliRunner
from local_web import Handler, serving
from tiny_formulanet import FRACTION, write

from pagemill.cli.models import command
from pagemill.config import model_files
from pagemill.config.file_download import fetch_file
from pagemill.config.model_cards import ModelKind, card_names, load_card
from pagemill.config.model_files import MODELS_VARIABLE, download_model, find_model
from pagemill.errors import NetworkError, NoSpaceError, OutputError, UsageError
from pagemill.recognition import formulanet_engine

BYTES = b"weights" * 100_000
SHA256 = hashlib.sha256(BYTES).hexdigest()
URL = "https://models.invalid/some/path/tiny.onnx"


@pytest.fixture
def server():
    """A server with the file; ``files`` may be changed."""

    class Models(Handler):
        def do_GET(self):
            asked.append(self.path)
            body = files.get(self.path)
            self.send_response(200 if body is not None else 404)
            self.send_header("Content-Length", str(len(body or b"") + short[0]))
            self.end_headers()
            self.wfile.write(body or b"")

    files, asked, short = {"/some/path/tiny.onnx": BYTES}, [], [0]
    with serving(Models) as httpd:
        httpd.files, httpd.asked, httpd.short = files, asked, short
        yield httpd


def test_a_file_is_fetched_from_the_same_path_of_a_mirror(server, tmp_path):
    target = tmp_path / "models" / "tiny.onnx"
    fetch_file(URL, target, SHA256, mirror=server.url + "/")
    assert target.read_bytes() == BYTES
    assert [path.name for path in target.parent.iterdir()] == ["tiny.onnx"]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (URLError(socket.gaierror(-2, "Name or service not known")), "the address of its host is not known"),
        (URLError(ConnectionRefusedError(111, "Connection refused")), "connection refused"),
        (URLError(TimeoutError("timed out")), "the server did not answer in time"),
        (HTTPError("https://a", 404, "Not Found", None, None), "the server answered 404 Not Found"),
    ],
)
def test_errors_of_the_network_are_reported_in_words(monkeypatch, tmp_path, error, said):
    def fails(*_, **__):
        raise error

    monkeypatch.setattr("urllib.request.urlopen", fails)
    with pytest.raises(NetworkError) as raised:
        fetch_file(URL, tmp_path / "tiny.onnx", SHA256)
    assert raised.value.message == f"cannot download {URL}: {said}"
    assert "--mirror" in (raised.value.remedy or "")


@pytest.mark.parametrize("fault", ["other bytes", "not there", "cut off"])
def test_what_is_not_the_file_is_not_kept(server, tmp_path, fault):
    if fault == "other bytes":
        server.files["/some/path/tiny.onnx"] = b"x" + BYTES[1:]
    elif fault == "not there":
        server.files.clear()
    else:
        server.files["/some/path/tiny.onnx"] = BYTES[:-1000]
        server.short[0] = 1000
    with pytest.raises(NetworkError, match=r"tiny\.onnx"):
        fetch_file(URL, tmp_path / "tiny.onnx", SHA256, mirror=server.url)
    assert list(tmp_path.iterdir()) == []


def test_offline_nothing_is_asked(server, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(NetworkError, match="HF_HUB_OFFLINE"):
        fetch_file(URL, tmp_path / "tiny.onnx", SHA256, mirror=server.url)
    assert server.asked == []


@pytest.mark.parametrize(
    ("broken", "kind"),
    [("read", NetworkError), ("write", NoSpaceError)],
)
def test_failures_in_the_middle_are_distinguished(monkeypatch, tmp_path, broken, kind):
    class Answer(io.BytesIO):
        def read(self, _):
            if broken == "read":
                raise SSLError(1, "record layer failure")
            return b"x"

    class Full(io.BytesIO):
        def write(self, _):
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("urllib.request.urlopen", lambda *_, **__: Answer())
    if broken == "write":
        monkeypatch.setattr(Path, "open", lambda *_: Full())
    with pytest.raises(kind):
        fetch_file(URL, tmp_path / "tiny.onnx", SHA256)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made(server, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match=r"tiny\.onnx"):
        fetch_file(URL, tmp_path / "file" / "tiny.onnx", SHA256, mirror=server.url)


@pytest.fixture
def card(tmp_path):
    path = tmp_path / "tiny.toml"
    path.write_text(
        f'name = "tiny"\ntitle = "Tiny"\nkind = "lines"\nrepository = ""\nlicence = "MIT"\nlicence_source = ""\n'
        f'parameters = 1\ndownload_bytes = {len(BYTES)}\nlanguages = "None."\nlanguages_source = ""\n'
        f'[[files]]\nurl = "{URL}"\nsha256 = "{SHA256}"\n'
    )
    return path


@pytest.mark.parametrize("place", ["cache", "mirror", "to"])
def test_a_model_is_found_where_it_was_put(server, tmp_path, monkeypatch, card, place):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv(MODELS_VARIABLE, str(tmp_path / "mine") if place == "mirror" else "")
    arguments = ["download", str(card), "--mirror", server.url]
    if place == "to":
        arguments += ["--to", str(tmp_path / "to")]
    said = CliRunner().invoke(command, arguments, catch_exceptions=False).stdout
    folder = {"cache": tmp_path / "cache/pagemill/models", "mirror": tmp_path / "mine", "to": tmp_path / "to"}[place]
    assert f"tiny: {folder / 'tiny'}" in said
    assert (folder / "tiny" / "tiny.onnx").read_bytes() == BYTES
    monkeypatch.setenv(MODELS_VARIABLE, str(folder) if place != "cache" else "")
    loaded = load_card(card)
    assert find_model(loaded) == folder / "tiny"
    server.asked.clear()
    assert download_model(loaded, endpoint=server.url) == folder / "tiny"
    assert server.asked == [], "what is there is not fetched again"


def test_a_formula_model_is_used_once_it_is_downloaded(server, tmp_path, monkeypatch, card):
    model = write(tmp_path / "made.onnx", FRACTION).read_bytes()
    server.files["/some/path/tiny.onnx"] = model
    written = card.read_text().replace(SHA256, hashlib.sha256(model).hexdigest()).replace('"lines"', '"formulas"')
    card.write_text(written)
    monkeypatch.setenv(MODELS_VARIABLE, str(tmp_path / "mine"))
    monkeypatch.setattr(model_files, "card_names", lambda: [str(card)])
    assert formulanet_engine.offers() == []
    CliRunner().invoke(command, ["download", str(card), "--mirror", server.url], catch_exceptions=False)
    (offer,) = formulanet_engine.offers()
    crop = np.full((60, 90, 3), 255, np.uint8)
    crop[20:40, 20:70] = 0
    assert offer.create().recognize([crop])[0].latex == r"\frac { a } {b }"


def test_cpu_best_asks_for_every_model_of_it(server, tmp_path):
    """The hashes are those of the real files, which are not here: the first one is refused."""
    best = [card for card in map(load_card, card_names()) if card.cpu_best]
    assert [card.name for card in best if card.kind is ModelKind.FORMULAS] == ["pp-formulanet-plus-s"]
    assert {card.name for card in best if card.kind is ModelKind.LINES} >= {"pp-ocrv5-korean", "pp-ocrv5-thai"}
    for card in best:
        server.files.update({"/" + file.url.split("/", 3)[3]: b"not it" for file in card.files})
    arguments = ["download", "cpu-best", "--to", str(tmp_path), "--mirror", server.url]
    with pytest.raises(NetworkError, match="is not the file that was expected"):
        CliRunner().invoke(command, arguments, catch_exceptions=False)


@pytest.mark.parametrize("bad", ["url = 'http://plain/tiny.onnx'", "sha256 = 'ab'", "url = 'https://host/a/..%2f'"])
def test_cards_with_bad_files_are_refused(card, bad):
    name = bad.split(" = ")[0]
    lines = [bad if line.startswith(name + " ") else line for line in card.read_text().splitlines()]
    card.write_text("\n".join(lines))
    with pytest.raises(UsageError, match="not valid"):
        load_card(card)
