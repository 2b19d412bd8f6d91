"""The queue length of a vLLM server from its ``/metrics``."""

from __future__ import annotations

_WAITING = b"vllm:num_requests_waiting"
_MOST = 1e9


def requests_waiting(text: bytes) -> int | None:
    """Waiting requests, summed over the engines of the server.

    Args:
        text: In the Prometheus text format: ``vllm:num_requests_waiting{engine="0",model_name="..."} 3.0`` a line.

    Returns:
        None if the text does not contain it.
    """
    total: int | None = None
    at = text.find(_WAITING)
    while at >= 0:
        end = text.find(b"\n", at)
        rest = text[at + len(_WAITING) : end if end >= 0 else len(text)]
        if rest[:1] in (b"{", b" ") and (at == 0 or text[at - 1 : at] == b"\n"):  # neither a comment nor a longer name
            try:
                value = float(rest.rsplit(b"}", 1)[-1].split()[0])
            except (ValueError, IndexError):
                return None
            if not 0 <= value < _MOST:  # NaN fails this, too
                return None
            total = (total or 0) + int(value)
        at = text.find(_WAITING, at + len(_WAITING))
    return total
