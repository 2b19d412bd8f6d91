"""The command line of ``pagemill serve-model``."""

from click.testing import CliRunner

from pagemill.cli.serve_model import command
from pagemill.errors import ExitCode


def test_a_model_that_is_not_named_by_its_option_is_reported():
    ended = CliRunner().invoke(command, ["glm-ocr", "--dry-run"])
    assert ended.exit_code == ExitCode.USAGE
    assert "unexpected 'glm-ocr'" in ended.output
    assert "--model" in ended.output
