"""``pagemill publish --repo`` as a process: to a small Hub on this machine, through the real client."""

import hashlib
import io
import json
import signal

import pyarrow.parquet as pq
import pytest
from forked_command import ForkedCommand
from local_hub import TOKEN, Repository
from published_run import REPO, environment, publish, to_hub

from pagemill.errors import ExitCode
from pagemill.publishing.build import STAGING

pytestmark = [pytest.mark.slow, pytest.mark.integration]

EMBEDDINGS = b"pagemill.embeddings"


def test_made_uploaded_and_verified(run, hub):
    ended = to_hub(run, hub, "--private")
    assert ended.returncode == 0, ended.stderr
    repository = hub.repositories[REPO]
    assert repository.private
    assert len(repository.commits) == 1
    files = repository.branches["main"]
    assert set(files) == {
        *("README.md", "pagemill.json", "run.json", "data/train-00000-of-00001.parquet"),
        *("embeddings/corpus_ocr_text.npy", "embeddings/corpus_ocr_text.ids.parquet"),
    }
    for file in json.loads(files["pagemill.json"])["files"]:
        assert hashlib.sha256(files[file["path"]]).hexdigest() == file["sha256"]
    assert b'license: "cc-by-4.0"' in files["README.md"]
    assert TOKEN not in ended.stderr + ended.stdout
    assert not any(TOKEN.encode() in path.read_bytes() for path in run.rglob("*") if path.is_file())


def test_nothing_of_this_machine_is_published(run, hub):
    assert to_hub(run, hub).returncode == 0
    files = hub.repositories[REPO].branches["main"]
    rows = pq.read_table(io.BytesIO(files["data/train-00000-of-00001.parquet"])).to_pylist()
    assert sorted(row["source"] for row in rows) == ["letter.pdf", "report.pdf", "report.pdf", "report.pdf"]
    assert not any(b"secret folder" in data or str(run).encode() in data for data in files.values())
    told = json.loads(pq.read_schema(io.BytesIO(files["embeddings/corpus_ocr_text.ids.parquet"])).metadata[EMBEDDINGS])
    assert (told["identity"]["engine"], told["identity"]["model"]) == ("mill", "model")
    messages = [error["message"] for row in rows for error in row["errors"]]
    assert messages
    assert not any("miller" in message for message in messages)


def test_the_second_time_nothing_is_sent(run, hub):
    assert to_hub(run, hub).returncode == 0
    uploads = hub.uploads()
    assert to_hub(run, hub).returncode == 0
    assert hub.uploads() == uploads
    assert len(hub.repositories[REPO].commits) == 1


def test_killed_in_the_middle_and_gone_on(run, hub):
    """Killed when the first large file has arrived: nothing is shown yet, and that file is not sent again."""
    process = None

    def kill() -> None:
        process.kill()

    hub.on_upload = kill
    process = ForkedCommand("publish", run, "--repo", REPO, "--licence", "cc-by-4.0", env=environment(hub, TOKEN))
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert hub.repositories[REPO].branches["main"] == {}
    assert hub.uploads() == 1
    hub.on_upload = lambda: None
    ended = to_hub(run, hub)
    assert ended.returncode == 0, ended.stderr
    assert hub.uploads() == 3
    assert len(hub.repositories[REPO].branches["main"]) == 6


def test_an_upload_that_fails_continues(run, hub):
    hub.uploads_until_failure = 2
    ended = to_hub(run, hub)
    assert ended.returncode == ExitCode.OUTPUT  # the Hub said 403
    assert "Log in" in ended.stderr
    assert hub.repositories[REPO].branches["main"] == {}
    hub.uploads_until_failure = None
    assert to_hub(run, hub).returncode == 0
    assert hub.uploads() == 4


def test_what_the_hub_spoils_is_seen(run, hub):
    hub.spoil = True
    ended = to_hub(run, hub)
    assert ended.returncode == ExitCode.DAMAGED
    assert "uploaded, first:" in ended.stderr


def test_a_changed_run_replaces_its_files_and_no_others(run, hub, tmp_path):
    assert to_hub(run, hub, "--format", "files").returncode == 0
    files = hub.repositories[REPO].branches["main"]
    files["LICENSE.txt"] = b"by hand"
    assert "ocr_results.jsonl" in files
    assert to_hub(run, hub).returncode == 0
    assert "ocr_results.jsonl" not in files
    assert "data/train-00000-of-00001.parquet" in files
    assert files["LICENSE.txt"] == b"by hand"


def test_a_branch(run, hub):
    assert to_hub(run, hub, "--revision", "v2").returncode == 0
    branches = hub.repositories[REPO].branches
    assert branches["main"] == {}
    assert "README.md" in branches["v2"]


def test_without_a_token(run, hub):
    ended = to_hub(run, hub, token=None)
    assert ended.returncode == ExitCode.OUTPUT
    assert "HF_TOKEN" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not (run / STAGING).exists()  # told before hours of work


def test_an_invalid_place_is_reported_before_the_files_are_made(run):
    ended = publish(run, "--to", "https://mill.example/pages", "--licence", "cc0-1.0")
    assert (ended.returncode, "read-only" in ended.stderr) == (ExitCode.OUTPUT, True)
    assert not (run / STAGING).exists()


def test_a_public_repository_is_not_taken_for_a_private_one(run, hub):
    assert to_hub(run, hub).returncode == 0
    ended = to_hub(run, hub, "--private", "--title", "Other")
    assert ended.returncode == ExitCode.OUTPUT
    assert "public" in ended.stderr


def test_a_card_that_the_hub_does_not_take_is_reported_before_anything_is_sent(run, hub):
    ended = publish(run, "--repo", REPO, "--licence", "nonsense-1.0", hub=hub)
    assert ended.returncode == ExitCode.OUTPUT
    assert "--licence" in ended.stderr
    assert "nonsense-1.0" in ended.stderr
    assert hub.repositories == {}


@pytest.mark.parametrize("path", ["data/train-00000-of-00009.parquet", "run.json", "embeddings/mine.npy"])
def test_a_repository_with_files_of_somebody_else_is_left_alone(run, hub, path):
    """Shards of another dataset would be read as a part of this one."""
    files = {".gitattributes": b"*", "README.md": b"mine", "notes.txt": b"mine"}
    hub.repositories[REPO] = Repository(branches={"main": {**files, path: b"mine"}})
    ended = to_hub(run, hub)
    assert ended.returncode == ExitCode.OUTPUT
    assert path in ended.stderr
    assert hub.uploads() == 0
    del hub.repositories[REPO].branches["main"][path]
    assert to_hub(run, hub).returncode == 0
    assert hub.repositories[REPO].branches["main"]["notes.txt"] == b"mine"


def test_rows_of_somebody_else_do_not_come_between_ours(run, hub):
    assert to_hub(run, hub).returncode == 0
    files = hub.repositories[REPO].branches["main"]
    files["data/train-00001-of-00002.parquet"] = b"mine"
    ended = to_hub(run, hub, "--title", "Other")
    assert ended.returncode == ExitCode.OUTPUT
    assert "data/train-00001-of-00002.parquet" in ended.stderr
    assert "delete them there first" in ended.stderr
    assert len(hub.repositories[REPO].commits) == 1


def test_a_client_that_is_set_offline(run, hub):
    ended = to_hub(run, hub, more={"HF_HUB_OFFLINE": "1"})
    assert (ended.returncode, "HF_HUB_OFFLINE" in ended.stderr) == (ExitCode.OUTPUT, True)


def test_a_token_with_a_newline_works_and_is_not_shown(run, hub):
    assert to_hub(run, hub, "--hf-token", f"{TOKEN}\n", token=None).returncode == 0
    ended = to_hub(run, hub, "--hf-token", f"{TOKEN}\x01\n", "--title", "Other", token=None)
    assert ended.returncode != 0
    assert TOKEN not in ended.stderr


class Nowhere:
    url = "http://127.0.0.1:1"


def test_no_hub_there(run):
    ended = publish(run, "--repo", REPO, "--licence", "cc-by-4.0", "--hf-token", TOKEN, token=None, hub=Nowhere())
    assert ended.returncode == ExitCode.NETWORK
    assert "same command again" in ended.stderr
    assert TOKEN not in ended.stderr
