import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from extraction_pages import INVOICE
from synthetic_run import sample_pages, write_run

from pagemill.cli import cli
from pagemill.errors import NetworkError, UsageError


def called(*arguments: object):
    return CliRunner().invoke(cli, ["extract", *map(str, arguments)])


@pytest.fixture
def schema(tmp_path: Path) -> Path:
    path = tmp_path / "invoice.schema.json"
    path.write_text(json.dumps(INVOICE))
    return path


def test_a_run_is_not_parsed_again(tmp_path: Path, schema: Path):
    write_run(tmp_path / "run", sample_pages())
    ended = called(tmp_path / "run", "--schema", schema, "--server", "x", "-o", tmp_path / "out", "--lang", "en")
    assert ended.exit_code == 2
    assert "--lang and --output would parse again" in ended.output


def test_where_the_files_are_now_is_for_runs(tmp_path: Path, schema: Path):
    ended = called(tmp_path / "bill.pdf", "--schema", schema, "--server", "x", "--input", tmp_path)
    assert ended.exit_code == 2
    assert "--input is for a run directory" in ended.output


def test_the_model_is_looked_for_before_anything_is_parsed(tmp_path: Path, schema: Path):
    ended = called(tmp_path / "bill.pdf", "--schema", schema, "-o", tmp_path / "out")
    assert isinstance(ended.exception, UsageError)
    assert "--server URL" in ended.exception.remedy
    ended = called(tmp_path / "bill.pdf", "--schema", schema, "-o", tmp_path / "out", "--server", "127.0.0.1:9")
    assert isinstance(ended.exception, NetworkError)
    assert not (tmp_path / "out").exists()
