"""Log records on the console."""

import io
import logging

import pytest

from pagemill.cli.progress import LenientConsole, print_log

LOGGER = logging.getLogger("pagemill.parsing.page")


@pytest.fixture
def console():
    logger = logging.getLogger("pagemill")
    before = logger.level, list(logger.handlers)
    yield LenientConsole(file=io.StringIO(), width=80)
    logger.level, logger.handlers[:] = before
    logger.manager._clear_cache()


@pytest.mark.parametrize(("verbosity", "shown"), [(0, []), (1, ["why"]), (2, ["why", "how"])])
def test_decisions_are_printed_as_asked(console, verbosity, shown):
    print_log(console, verbosity)
    LOGGER.info("why")
    LOGGER.debug("how")
    assert console.file.getvalue().splitlines() == shown


def test_a_record_is_one_line_whatever_it_holds(console):
    print_log(console, 1)
    LOGGER.warning("a\nname %s [red]", "x" * 100)
    assert console.file.getvalue() == f"warning: a name {'x' * 100} [red]\n"


def test_a_defect_has_its_traceback(console):
    print_log(console, 1)
    try:
        raise ValueError("no")
    except ValueError:
        LOGGER.exception("a_1: the page failed")
    lines = console.file.getvalue().splitlines()
    assert lines[0] == "error: a_1: the page failed"
    assert lines[1].startswith("Traceback") and lines[-1] == "ValueError: no"
