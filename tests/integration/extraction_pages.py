"""Pages and a model's answers, for the tests of extraction."""

import json

from pagemill.document.labels import Label
from pagemill.document.page import PageResult, Region, TextLine, Word
from pagemill.inference.chat import Answer
from pagemill.inference.models import Served

INVOICE = {
    "type": "object",
    "required": ["number", "total", "due"],
    "properties": {
        "number": {"type": "string"},
        "total": {"type": "number"},
        "due": {"type": "string"},
        "items": {
            "type": "array",
            "items": {"type": "object", "properties": {"name": {"type": "string"}, "price": {"type": "number"}}},
        },
    },
}


def page(number: int, *lines: str, left: float = 100) -> PageResult:
    """A page with a line of text every 50 pixels; words are 10 pixels wide for each character."""
    made = []
    for row, text in enumerate(lines):
        top, words, place = 100 + 50 * row, [], 0
        for word in text.split():
            place = text.index(word, place)
            words.append(Word(word, (left + 10 * place, top, left + 10 * (place + len(word)), top + 30)))
            place += len(word)
        made.append(TextLine(text=text, box=(left, top, left + 10 * len(text), top + 30), words=tuple(words)))
    region = Region(
        index=0,
        label=Label.TEXT,
        bbox_2d=(100, 100, 900, 900),
        bbox=(100, 100, 900, 900),
        content="\n".join(lines),
        lines=tuple(made),
    )
    return PageResult(
        page_id=f"doc_{number}", page_idx=number - 1, doc_id="doc", source="doc.pdf", page_number=number,
        width=1000, height=2000, regions=[region],
    )  # fmt: skip


class FakeClient:
    """Answers from a list, or by a function of the request's body."""

    in_flight = 4

    def __init__(self, *replies, max_model_len: int | None = 16_000) -> None:
        self.replies = list(replies)
        self.requests: list[dict] = []
        self.max_model_len = max_model_len

    async def find_model(self, wanted, known):
        return Served("served", max_model_len=self.max_model_len)

    async def ask(self, body: bytes) -> Answer:
        request = json.loads(body)
        self.requests.append(request)
        reply = self.replies[0](request) if callable(self.replies[0]) else self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply if isinstance(reply, Answer) else answer(reply)


def answer(values, *, finish_reason: str = "stop") -> Answer:
    text = values if isinstance(values, str) else json.dumps(values)
    return Answer(text=text, finish_reason=finish_reason, completion_tokens=10, prompt_tokens=100)
