import re
from pathlib import Path

from pagemill import errors
from pagemill.errors import ExitCode, PagemillError

TABLE = Path(__file__).parents[2] / "docs" / "exit-codes.md"


def test_the_table_in_the_docs_is_the_enumeration() -> None:
    rows = re.findall(r"^\| (\d+) \| `(\w+)` \| (\S.*?) \|", TABLE.read_text(encoding="utf-8"), re.MULTILINE)
    assert [(int(code), name) for code, name, _ in rows] == [(code.value, code.name) for code in ExitCode]


def test_errors_carry_an_exit_code_that_is_not_success() -> None:
    for kind in vars(errors).values():
        if isinstance(kind, type) and issubclass(kind, PagemillError):
            assert kind("message").exit_code not in {ExitCode.OK, ExitCode.PAGES_FAILED}, kind
