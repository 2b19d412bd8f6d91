"""The result of an extraction. These structs *are* the file that is written for each document."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any, TypeVar

import msgspec

from pagemill.document.geometry import Box

SCHEMA_VERSION = "1.0"

T = TypeVar("T")


class ExtractionStatus(StrEnum):
    """How the extraction of a document ended."""

    DONE = "done"
    """Every page was read, and the values match the schema."""
    INCOMPLETE = "incomplete"
    """There are values; a required one is missing, one does not match the schema, or pages were not read."""
    FAILED = "failed"
    """There are no values: no answer of the model was usable."""


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """Where a value is in the document."""

    page: int | None
    page_id: str
    bbox: Box
    """In pixels of the page image, as in the record."""
    bbox_2d: tuple[int, int, int, int]
    """In thousandths of the page width and height."""
    boxes: tuple[Box, ...]
    """In pixels, one for each line that the value is on."""
    text: str
    """Text as it was read there."""
    score: float
    """Similarity of the value and the text, 0-1."""


class Alternative(msgspec.Struct, frozen=True, kw_only=True):
    """Another value of the same field, of an answer about other pages."""

    value: Any
    source: Source | None


class ExtractedField(msgspec.Struct, frozen=True, kw_only=True):
    """One value."""

    path: str
    """JSON Pointer into ``values``."""
    value: Any
    founded: bool
    """Whether the value was found on a page that the model saw. One that was not may be a conclusion, such as true or
    false, or invented."""
    source: Source | None
    alternatives: tuple[Alternative, ...] = ()


class ExtractionProblem(msgspec.Struct, frozen=True, kw_only=True):
    """Pages that gave no values, or not all of them."""

    pages: tuple[int | None, ...]
    category: str
    message: str
    remedy: str | None = None


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Pages that were shown to the model together."""

    pages: tuple[int | None, ...]
    images: int
    """Page images that went with the text."""
    attempts: int
    prompt_tokens: int | None
    """Tokens of all attempts; None if the server does not report them."""
    completion_tokens: int | None


class Extraction(msgspec.Struct, frozen=True, kw_only=True):
    """The values of one document, and where they come from."""

    doc_id: str
    source: str
    """The input, as the record has it."""
    status: ExtractionStatus
    values: dict[str, Any]
    """Values by the schema; those not found are left out."""
    fields: list[ExtractedField]
    missing: list[str]
    """Required fields without a value, as JSON Pointers."""
    invalid: list[str]
    """Values that were left out because the schema does not allow them."""
    problems: list[ExtractionProblem]
    pages: int
    """Pages of the document."""
    requests: list[ModelRequest]
    schema: str
    """Its name."""
    schema_sha256: str
    model: str
    """Name on the server."""
    version: str
    """Version of pagemill."""
    schema_version: str = SCHEMA_VERSION

    @property
    def unfounded(self) -> list[ExtractedField]:
        """Values that are on no page that the model saw."""
        return [field for field in self.fields if not field.founded]

    def to(self, kind: type[T]) -> T:
        """The values as an object of a pydantic model, a msgspec struct or a dataclass.

        Raises:
            ValueError: They do not fit it, as the error of that library: a required value is missing.
        """
        validate: Callable[[dict[str, Any]], T] | None = getattr(kind, "model_validate", None)
        return validate(self.values) if validate else msgspec.convert(self.values, kind, strict=False)
