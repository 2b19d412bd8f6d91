"""Options of requests to docling-serve's API, as options of jobs. An option without effect gives a warning."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from pagemill.config.chunking import ChunkSettings
from pagemill.config.modes import LINES, VLM, TextLayerMode
from pagemill.errors import UsageError
from pagemill.recognition.languages import TESSDATA_NAMES

FORMATS = {"md": "markdown", "json": "doclingdocument", "html": "html", "text": "txt", "doctags": "doctags"}
"""Names of docling-serve, and of :mod:`pagemill.export.formats`."""
IMAGE_MODES = ("placeholder", "embedded", "referenced")
TARGETS = ("inbody", "zip")
_OF_CHUNKERS = {
    "chunker": "hybrid",
    "merge_peers": "true",
    "tokenizer": "sentence-transformers/all-minilm-l6-v2",
    "use_markdown_tables": "false",
    "use_markdown_images": "false",
    "image_placeholder": "![image]",
}
"""Options of chunkers without effect here, and docling's defaults in lower case, which clients send along."""
_LAST_PAGE = 999_999_999
_TRUE, _FALSE = ("true", "1", "yes", "on"), ("false", "0", "no", "off")
_WITHOUT_EFFECT: dict[str, tuple[str, str | bool | None]] = {
    "from_formats": ("files are recognized by their content", None),
    "ocr_engine": ("the engine is chosen by language", "auto"),
    "ocr_preset": ("the engine is chosen by language", "auto"),
    "ocr_custom_config": ("the engine is chosen by language", None),
    "pdf_backend": ("there is one", None),
    "table_mode": ("there is one", "accurate"),
    "table_cell_matching": ("cells take their text from the page", True),
    "document_timeout": ("pages have time limits", None),
    "abort_on_error": ("the other pages are read", False),
    "do_table_structure": ("tables are always read", True),
    "images_scale": ("pictures are as on the page", None),
    "include_page_images": ("images of pages are at /v1/jobs/{id}/pages/{n}/image", False),
    "md_compact_tables": ("tables are as in pagemill's Markdown", False),
    "do_pdf_heading_hierarchy": ("headings have levels", True),
    "do_code_enrichment": ("code is read as text", False),
    "do_formula_enrichment": ("formulas are read as LaTeX by the engine", False),
    "do_picture_classification": ("classes are those of layout detection", False),
    "do_chart_extraction": ("start the server with --describe", False),
    "do_picture_description": ("start the server with --describe", False),
}
"""Accepted options of docling-serve without effect: the reason, and the value that matches our behaviour."""


class Chunking(msgspec.Struct, kw_only=True):
    """How documents are cut into chunks."""

    max_tokens: int = ChunkSettings().max_tokens
    raw_text: bool = False
    """The text without its headings is in the answer, too."""


class Conversion(msgspec.Struct, kw_only=True):
    """A requested conversion, stored with its job, so that a restart changes nothing."""

    options: dict[str, Any] = {}
    """Options of the job."""
    formats: list[str] = msgspec.field(default_factory=lambda: ["md"])
    images: str = "embedded"
    page_break: str = ""
    target: str = "inbody"
    warnings: list[str] = []
    chunking: Chunking | None = None
    """Chunks instead of documents."""


def chunked(wanted: Conversion, chunker: str, given: Mapping[str, Any], *, with_document: bool) -> Conversion:
    """The conversion with the requested chunks.

    Args:
        wanted: The conversion before.
        chunker: ``hybrid`` or ``hierarchical``.
        given: Options of the chunker, by name.
        with_document: The DoclingDocument is in the answer, too.

    Raises:
        UsageError: A value is not valid, or the target does not support chunks.
    """
    if wanted.target != "inbody":
        raise UsageError(f"target {wanted.target!r} is not available for chunks", remedy="Use inbody.")
    made = Chunking()
    if chunker == "hierarchical":
        wanted.warnings.append("chunks are cut as by the hybrid chunker")
    for name, value in given.items():
        if name == "max_tokens" and value not in (None, ""):
            try:
                made.max_tokens = ChunkSettings(max_tokens=int(value)).max_tokens
            except (TypeError, ValueError):
                raise UsageError(f"max_tokens is {value!r}", remedy="Send a number.") from None
        elif name == "include_raw_text":
            made.raw_text = flag(name, value)
        elif name not in _OF_CHUNKERS or str(value).lower() != _OF_CHUNKERS[name]:
            wanted.warnings.append(f"the option {name[:100]!r} of the chunker has no effect")
    wanted.formats, wanted.chunking = ["json"] if with_document else [], made
    return wanted


def conversion(given: Mapping[str, Any], target: str = "inbody") -> Conversion:
    """Translate the options of a request.

    Args:
        given: By name: JSON values, or the texts of a form (lists for fields that came more than once).
        target: Kind of the response: ``inbody`` or ``zip``.

    Raises:
        UsageError: A value is not valid, or asks for what this server does not do.
    """
    if target not in TARGETS:
        # Docling's own client tries this one first, and falls back to `inbody` by these words.
        raise UsageError(
            f"target {target!r} is not available: presigned_url and other remote targets require artifact storage to be"
            " configured",
            remedy=f"Use {' or '.join(TARGETS)}.",
        )
    made = Conversion(target=target)
    for name, value in given.items():
        if value is None or value == "":
            continue
        if translate := _TRANSLATED.get(name):
            translate(made, value)
        elif name in _WITHOUT_EFFECT:
            why, harmless = _WITHOUT_EFFECT[name]
            if (flag(name, value) if isinstance(harmless, bool) else value) != harmless:
                made.warnings.append(f"the option {name} has no effect: {why}")
        else:
            made.warnings.append(f"the option {name[:100]!r} is not known and has no effect")
    return made


def _to_formats(made: Conversion, value: Any) -> None:
    wanted = _list("to_formats", value)
    made.formats = [each for each in FORMATS if each in wanted]
    for each in wanted:
        if each not in FORMATS:
            made.warnings.append(f"the output format {each[:100]!r} is not available: its content is null")


def _images(made: Conversion, value: Any) -> None:
    if value not in IMAGE_MODES:
        raise UsageError(f"image_export_mode is {value!r}", remedy=f"Choose one of {', '.join(IMAGE_MODES)}.")
    made.images = value


def _include_images(made: Conversion, value: Any) -> None:
    if not flag("include_images", value):
        made.images = "placeholder"


def _do_ocr(made: Conversion, value: Any) -> None:
    if not flag("do_ocr", value):
        # A page without a text layer would be empty otherwise; the warning informs the client.
        made.options["text_layer"] = TextLayerMode.ALWAYS.value
        made.warnings.append("do_ocr is false: pages without a text layer are read nevertheless")


def _force_ocr(made: Conversion, value: Any) -> None:
    if flag("force_ocr", value):
        made.options["text_layer"] = TextLayerMode.NEVER.value


def _languages(made: Conversion, value: Any) -> None:
    wanted = [_language(each) for each in _list("ocr_lang", value)]
    # `mul` asks for detection by page, which is what no option means here.
    if wanted and "mul" not in wanted:
        made.options["languages"] = list(dict.fromkeys(wanted))


def _language(tag: str) -> str:
    """Our code of a language: BCP 47 tags, and the names of Tesseract's and EasyOCR's files."""
    folded = tag.strip().lower()
    known = {name: code for code, name in TESSDATA_NAMES.items()} | {"ch_sim": "zh", "ch_tra": "zh", "chi_tra": "zh"}
    return known.get(folded) or folded.partition("-")[0]


def _pipeline(made: Conversion, value: Any) -> None:
    engines = {"standard": LINES, "vlm": VLM}
    if value not in tuple(engines):  # which may be a list
        raise UsageError(f"pipeline is {value!r}", remedy=f"Choose one of {', '.join(engines)}.")
    if value == "vlm":  # "standard" is docling's default: the server's own engine
        made.options["recognition_engine"] = VLM


def _page_range(made: Conversion, value: Any) -> None:
    try:
        first, last = (int(each) for each in _list("page_range", value))
    except ValueError:
        raise UsageError(
            "page_range is not a pair of page numbers", remedy="Send two numbers, such as [1, 5]."
        ) from None
    if not 1 <= first <= last:
        raise UsageError(f"page_range is {first} to {last}", remedy="Pages count from 1, and a range goes upwards.")
    # Clients send the largest number along as "to the end"; as an option it would be shown with the job.
    if first > 1 or last <= _LAST_PAGE:
        made.options["pages"] = f"{first}-{'' if last > _LAST_PAGE else last}"


def _page_break(made: Conversion, value: Any) -> None:
    made.page_break = str(value)[:1000]


_TRANSLATED: dict[str, Callable[[Conversion, Any], None]] = {
    "to_formats": _to_formats,
    "image_export_mode": _images,
    "include_images": _include_images,
    "do_ocr": _do_ocr,
    "force_ocr": _force_ocr,
    "ocr_lang": _languages,
    "pipeline": _pipeline,
    "page_range": _page_range,
    "md_page_break_placeholder": _page_break,
}


def flag(name: str, value: Any) -> bool:
    """A boolean, also as the text of a form field.

    Raises:
        UsageError: It is invalid.
    """
    if isinstance(value, bool):
        return value
    folded = str(value).lower()
    if folded not in _TRUE + _FALSE:
        raise UsageError(f"{name} is {value!r}", remedy="Send true or false.")
    return folded in _TRUE


def _list(name: str, value: Any) -> list[str]:
    """A list, as JSON, as a repeated field of a form, or as a text with commas."""
    if isinstance(value, str):
        if value.startswith("["):
            try:
                value = msgspec.json.decode(value.encode())
            except (msgspec.DecodeError, RecursionError):
                raise UsageError(f"{name} is not a list", remedy="Send a JSON list, or repeat the field.") from None
        else:
            value = value.split(",")
    if not isinstance(value, list) or len(value) > 1000:
        raise UsageError(f"{name} is not a list", remedy="Send a JSON list, or repeat the field.")
    return [str(each).strip() for each in value if str(each).strip()]
