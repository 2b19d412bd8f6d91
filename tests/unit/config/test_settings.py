import pytest

from pagemill.config.settings import ParseSettings
from pagemill.errors import UsageError


def test_a_page_needs_some_time():
    for seconds in (0, -1, float("nan")):
        with pytest.raises(UsageError):
            ParseSettings(page_timeout_s=seconds)
