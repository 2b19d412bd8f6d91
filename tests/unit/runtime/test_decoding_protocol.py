import os

import pytest

from pagemill.document.page import PageError, TextLine, Word
from pagemill.errors import CorruptInputError, EncryptedError, PagemillError, TooLargeError
from pagemill.imaging.limits import DecodeLimits
from pagemill.imaging.page import PdfInfo, TextLayer
from pagemill.runtime.decoding_protocol import (
    HEADER,
    Described,
    Failed,
    Ready,
    Render,
    Rendered,
    decode_reply,
    decode_request,
    frame,
)


def test_messages_survive_the_way():
    layer = TextLayer(
        lines=(TextLine(text="한글 ok", box=(0.0, 1.0, 2.0, 3.0), words=(Word("한글", (0.0, 1.0, 1.0, 3.0)),)),),
        characters=4,
        unmapped=0,
        invisible=0,
        image_coverage=0.5,
    )
    replies = [
        Ready(),
        Described(PdfInfo(page_count=2, sizes=((1.0, 2.0),), metadata={"title": "t"})),
        Rendered(
            descriptor=3,
            path=None,
            width=4,
            height=5,
            dpi=200.0,
            text_layer=layer,
            image_boxes=((0.0, 0.0, 1.0, 1.0),),
            notes=("note",),
            warnings=(PageError(component="text_layer", category="unsupported", message="XFA"),),
        ),
        Failed("corrupt", "broken", None),
    ]
    for reply in replies:
        message = frame(reply)
        assert HEADER.unpack(message[: HEADER.size]) == (len(message) - HEADER.size,)
        assert decode_reply(message[HEADER.size :]) == reply
    request = Render(b"a.pdf", None, 3, DecodeLimits(dpi=150))
    assert decode_request(frame(request)[HEADER.size :]) == request


@pytest.mark.parametrize(
    ("category", "error"), [("encrypted", EncryptedError), ("too_large", TooLargeError), ("new", PagemillError)]
)
def test_failures_become_the_exception_of_their_category(category: str, error: type[PagemillError]):
    raised = Failed(category, "message", "remedy").exception()
    assert type(raised) is error
    assert (raised.message, raised.remedy) == ("message", "remedy")


def test_messages_with_file_names_that_are_no_utf8_survive():
    error = CorruptInputError(os.fsdecode(b"a\xff.pdf is damaged"))
    reply = decode_reply(frame(Failed.of(error))[HEADER.size :])
    assert reply == Failed("corrupt", "a\\udcff.pdf is damaged", None)
