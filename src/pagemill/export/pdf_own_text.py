"""The text that a page of a PDF has already, taken out where other text is put in its place.

Nothing of what the page shows changes. Invisible text goes. Visible text stays, and where it means nothing its fonts
are replaced on this page by copies that give white space for every character.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pikepdf
from pikepdf import Dictionary, Name, Operator, Stream

from pagemill.export.invisible_text import character_map

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_MOST_FORMS = 500
"""Forms of a page; beyond them the text of forms stays."""
_SHOWING = frozenset({"Tj", "TJ", "'", '"'})
_INVISIBLE = 3
_EMBEDDED = ("/FontFile", "/FontFile2", "/FontFile3")


class OwnText:
    """Takes text out of the pages of one document."""

    def __init__(self, pdf: pikepdf.Pdf) -> None:
        self._pdf = pdf
        self._silent: dict[tuple[int, int], Any] = {}
        """Silent copies by the original font, which many pages share."""
        self._maps: dict[int, Any] = {}

    def take_out(self, page: Any, *, visible: bool) -> None:
        """Take out invisible text, and visible text if asked to. The page gets resources of its own."""
        forms: dict[tuple[int, int], Any] = {}
        page.contents_coalesce()
        if (content := page.obj.get("/Contents")) is not None and b"Tr" in content.read_bytes():
            page.obj.Contents = Stream(self._pdf, _without_invisible(page))
        self._own_resources(page.obj, forms, visible=visible)

    def _own_resources(self, holder: Any, forms: dict[tuple[int, int], Any], *, visible: bool) -> None:
        """Give a page or form resources of its own, with forms and fonts whose text is taken out."""
        holder.Resources = resources = _copy(holder.get("/Resources"))
        if visible:
            resources.Font = fonts = _copy(resources.get("/Font"))
            for name, font in list(fonts.items()):
                fonts[name] = self._silenced(font)
        resources.XObject = objects = _copy(resources.get("/XObject"))
        for name, each in list(objects.items()):
            if not isinstance(each, Stream) or each.get("/Subtype") != Name.Form or len(forms) >= _MOST_FORMS:
                continue
            if each.objgen not in forms:  # else one that holds itself would have no end
                forms[each.objgen] = form = self._form(each)
                self._own_resources(form, forms, visible=visible)
            objects[name] = forms[each.objgen]

    def _form(self, original: Any) -> Any:
        data = original.read_bytes()
        if b"Tr" in data:
            data = _without_invisible(original)
        form = Stream(self._pdf, data)
        for key, value in original.items():
            if key not in ("/Length", "/Filter", "/DecodeParms"):
                form[key] = value
        return self._pdf.make_indirect(form)

    def _silenced(self, font: Any) -> Any:
        """A copy of a font whose characters are white space to programs that read text."""
        if not isinstance(font, Dictionary):
            return font
        composite = font.get("/Subtype") == Name.Type0
        if composite and not _is_embedded(font):  # viewers choose the glyphs of such a font by its Unicode values
            return font
        if font.objgen not in self._silent or not font.is_indirect:
            copy = _copy(font)
            digits = 4 if composite else 2
            if digits not in self._maps:
                blank = character_map(dict.fromkeys(range(16**digits), " "), digits=digits)
                self._maps[digits] = self._pdf.make_indirect(Stream(self._pdf, blank))
            copy.ToUnicode = self._maps[digits]
            self._silent[font.objgen] = self._pdf.make_indirect(copy)
        return self._silent[font.objgen]


def _copy(value: Any) -> Any:
    return Dictionary(dict(value.items())) if isinstance(value, Dictionary) else Dictionary()


def _is_embedded(font: Any) -> bool:
    descendants = font.get("/DescendantFonts")
    descriptor = descendants[0].get("/FontDescriptor") if descendants is not None and len(descendants) else None
    return descriptor is not None and any(name in descriptor for name in _EMBEDDED)


def _without_invisible(holder: Any) -> bytes:
    """The content of a page or form without the text that it draws in the invisible mode."""
    return pikepdf.unparse_content_stream(list(_visible(pikepdf.parse_content_stream(holder))))


def _visible(instructions: Iterable[Any]) -> Iterator[Any]:
    mode, outer = 0, []
    for instruction in instructions:
        operator = str(instruction.operator)
        if operator == "q":
            outer.append(mode)
        elif operator == "Q" and outer:
            mode = outer.pop()
        elif operator == "Tr" and instruction.operands:
            mode = int(instruction.operands[0])
        elif operator in _SHOWING and mode == _INVISIBLE:
            if operator in ("'", '"'):
                yield pikepdf.ContentStreamInstruction([], Operator("T*"))
            continue
        yield instruction
