import io
import os
from pathlib import Path

import msgspec
import numpy as np
import pytest

from pagemill.document.page import PageError, TextLine, Word
from pagemill.errors import CorruptInputError, EncryptedError, PagemillError, TooLargeError
from pagemill.imaging.page import DecodedPage, PdfInfo, TextLayer
from pagemill.runtime.decoding_protocol import (
    HEADER,
    Decoded,
    Failed,
    Ready,
    Render,
    receive_reply,
    receive_request,
    send,
)


def sent(message) -> io.BytesIO:
    stream = io.BytesIO()
    send(stream, message)
    stream.seek(0)
    return stream


@pytest.mark.parametrize(
    "message",
    [
        Ready(),
        PdfInfo(page_count=2, sizes=((1.0, 2.0),), metadata={"title": "t"}),
        Failed("corrupt", "broken", None),
    ],
)
def test_messages_survive_the_way(message):
    assert receive_reply(sent(message)) == message


def test_requests_survive_the_way():
    request = Render(Path(os.fsdecode(b"\xff.pdf")), None, 3)
    assert receive_request(sent(request)) == request


def page(pixels: np.ndarray) -> DecodedPage:
    layer = TextLayer(
        lines=(TextLine(text="한글 ok", box=(0.0, 1.0, 2.0, 3.0), words=(Word("한글", (0.0, 1.0, 1.0, 3.0)),)),),
        characters=4,
        unmapped=0,
    )
    return DecodedPage(
        pixels=pixels,
        dpi=200.0,
        text_layer=layer,
        image_boxes=((0.0, 0.0, 1.0, 1.0),),
        notes=("note",),
        warnings=(PageError(component="text_layer", category="unsupported", message="XFA"),),
    )


def test_pages_survive_the_way():
    before = page(np.arange(60, dtype=np.uint8).reshape(5, 4, 3))
    reply = receive_reply(sent(Decoded(before)))
    assert isinstance(reply, Decoded)
    after = reply.page
    assert after.pixels.tolist() == before.pixels.tolist()
    assert after.pixels.flags.writeable
    assert (after.text_layer, after.image_boxes) == (before.text_layer, before.image_boxes)
    assert (after.dpi, after.notes, after.warnings) == (before.dpi, before.notes, before.warnings)


def test_a_page_that_is_cut_off_is_none():
    whole = sent(Decoded(page(np.zeros((5, 4, 3), np.uint8)))).getvalue()
    for length in (0, 2, 20, len(whole) - 1):
        with pytest.raises(EOFError):
            receive_reply(io.BytesIO(whole[:length]))


def test_an_absurd_size_is_refused_before_memory_is_taken():
    with pytest.raises(msgspec.MsgspecError, match="4,294,967,295 bytes"):
        receive_reply(io.BytesIO(HEADER.pack(2**32 - 1)))
    vast = np.lib.stride_tricks.as_strided(np.zeros(3, np.uint8), (2**16, 2**16, 3), (0, 0, 0))
    stream = io.BytesIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(np, "ascontiguousarray", lambda pixels: np.zeros(0, np.uint8))
        send(stream, Decoded(page(vast)))
    stream.seek(0)
    with pytest.raises(msgspec.MsgspecError, match="65,536 x 65,536"):
        receive_reply(stream)

    size = {"type": "Decoded", "page": {"pixels": (2**26, 1, b"abc")}}
    body = msgspec.msgpack.encode(size)
    with pytest.raises(msgspec.MsgspecError, match="Expected `int`"):
        receive_reply(io.BytesIO(HEADER.pack(len(body)) + body))


@pytest.mark.parametrize(
    ("category", "error"), [("encrypted", EncryptedError), ("too_large", TooLargeError), ("new", PagemillError)]
)
def test_failures_become_the_exception_of_their_category(category: str, error: type[PagemillError]):
    raised = Failed(category, "message", "remedy").exception()
    assert type(raised) is error
    assert (raised.message, raised.remedy) == ("message", "remedy")


def test_messages_with_file_names_that_are_no_utf8_survive():
    error = CorruptInputError(os.fsdecode(b"a\xff.pdf is damaged"))
    assert receive_reply(sent(Failed.of(error))) == Failed("corrupt", "a\\udcff.pdf is damaged", None)
