"""Addresses on web servers that do not answer, or answer with an error."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from local_web import Handler, serving

from pagemill.errors import (
    MissingDependencyError,
    MissingInputError,
    NetworkError,
    PagemillError,
    TooLargeError,
    UnsupportedInputError,
)
from pagemill.installation import install_extra
from pagemill.sources.items import RemoteFile, SkippedFiles
from pagemill.sources.remote import copy_to_disk, expand_url, unreachable


class _Answers(Handler):
    """Answers ``/404`` with status 404, and so on."""

    def do_GET(self) -> None:
        self.answer(int(Path(self.path).stem), b"<html>an error of a proxy</html>")

    do_HEAD = do_GET


@pytest.fixture
def web() -> Iterator[str]:
    with serving(_Answers) as server:
        yield server.url


def _error(url: str) -> PagemillError:
    [item] = expand_url(url, 0, recursive=False, skipped=SkippedFiles())
    assert not isinstance(item.content, Path)
    with pytest.raises(Exception) as caught:
        item.content.filesystem.info(item.content.path)
    return unreachable(url, caught.value)


@pytest.mark.parametrize("status", [404, 410])
def test_a_file_that_a_server_does_not_have_is_missing(web: str, status: int) -> None:
    assert isinstance(_error(f"{web}/{status}.pdf"), MissingInputError)


@pytest.mark.parametrize("status", [403, 502])
def test_an_error_of_a_server_is_no_missing_file(web: str, status: int) -> None:
    error = _error(f"{web}/{status}.pdf")
    assert isinstance(error, NetworkError)
    assert str(status) in error.message


def test_a_server_that_is_not_there_is_no_missing_file() -> None:
    with socket.socket() as taken:  # bound, and nobody listens
        taken.bind(("127.0.0.1", 0))
        error = _error(f"http://127.0.0.1:{taken.getsockname()[1]}/a.pdf")
    assert isinstance(error, NetworkError)
    assert "cannot be read" in error.message


def test_what_the_client_of_the_hub_says_of_an_address() -> None:
    errors = pytest.importorskip("huggingface_hub.errors")
    address = "hf://datasets/mills/ledgers"

    def kind(name: str) -> type[PagemillError]:
        refusal = getattr(errors, name).__new__(getattr(errors, name))
        missing = FileNotFoundError(address)
        missing.__cause__ = refusal
        assert type(unreachable(address, missing)) is type(unreachable(address, refusal))
        return type(unreachable(address, refusal))

    assert kind("RepositoryNotFoundError") is MissingInputError
    assert kind("RevisionNotFoundError") is MissingInputError
    assert kind("GatedRepoError") is NetworkError  # it is there
    assert kind("HFValidationError") is UnsupportedInputError
    assert type(unreachable(address, json.JSONDecodeError("no JSON", "<html>", 0))) is NetworkError


@pytest.mark.parametrize(
    ("url", "extra"), [("https://h/a.pdf", "http"), ("http://h/a.pdf", "http"), ("hf://datasets/o/n", "hub")]
)
def test_a_missing_package_is_named_by_its_extra(url: str, extra: str):
    error = unreachable(url, ImportError("no module"))
    assert isinstance(error, MissingDependencyError)
    assert error.remedy == f"Install it: {install_extra(extra)}"
    other = unreachable("s3://b/a.pdf", ImportError("no module named s3fs"))
    assert "s3fs" in other.message


def test_a_copy_is_bounded_and_leaves_nothing_when_it_is_too_large(tmp_path: Path):
    import fsspec

    (tmp_path / "a.pdf").write_bytes(b"%PDF-" * 10)
    remote = RemoteFile(fsspec.filesystem("file"), str(tmp_path / "a.pdf"))
    copies = tmp_path / "copies"
    copies.mkdir()
    assert copy_to_disk(remote, copies, max_bytes=50).path.read_bytes() == b"%PDF-" * 10
    with pytest.raises(TooLargeError, match="more than 49 bytes"):
        copy_to_disk(remote, copies, max_bytes=49)
    assert [*copies.iterdir()] == []
