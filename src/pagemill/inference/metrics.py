"""The length of a vLLM server's queue, out of the text of its ``/metrics``."""

from __future__ import annotations

_WAITING = b"vllm:num_requests_waiting"
_MOST = 1e9


def requests_waiting(text: bytes) -> int | None:
    """Requests that wait to be computed, summed over the engines of the server.

    Args:
        text: In the Prometheus text format: ``vllm:num_requests_waiting{engine="0",model_name="..."} 3.0`` a line.

    Returns:
        None when the text does not tell.
    """
    total: int | None = None
    at = text.find(_WAITING)
    while at >= 0:
        end = text.find(b"\n", at)
        rest = text[at + len(_WAITING) : end if end >= 0 else len(text)]
        if rest[:1] in (b"{", b" ") and (at == 0 or text[at - 1 : at] == b"\n"):  # not a comment nor a longer name
            try:
                value = float(rest.rsplit(b"}", 1)[-1].split()[0])
            except (ValueError, IndexError):
                return None
            if not 0 <= value < _MOST:  # nor no number at all
                return None
            total = (total or 0) + int(value)
        at = text.find(_WAITING, at + len(_WAITING))
    return total
