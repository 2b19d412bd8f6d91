import pytest

from pagemill.config.recognition import RecognitionSettings
from pagemill.errors import UsageError


@pytest.mark.parametrize(
    "wrong",
    [
        {"request_timeout_s": float("inf")},
        {"request_timeout_s": float("nan")},
        {"server_wait_s": 0.0},
    ],
)
def test_what_no_request_could_be_made_with_is_refused(wrong):
    with pytest.raises(UsageError):
        RecognitionSettings(**wrong)
