"""Existing text of a PDF page, removed where other text replaces it.

Nothing of what the page shows changes. Invisible text goes. Visible text stays, and where it means nothing its fonts
are replaced on this page by copies that give white space for every character.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pikepdf
from pikepdf import ContentStreamInstruction, Dictionary, Name, Operator, Stream

from pagemill.export.invisible_text import character_map
from pagemill.export.pdf_content_size import MAX_FORMS, is_small, sets_modes

_SHOWING = frozenset({"Tj", "TJ", "'", '"'})
_MOVING = frozenset({"BT", "ET", "Td", "TD", "Tm", "T*", "'", '"'})
"""What is shown next has a place of its own, and not the end of what was shown before."""
_SHOWING_NOTHING = frozenset(
    {
        *("q", "Q", "cm", "w", "J", "j", "M", "d", "ri", "i", "gs"),
        *("BT", "ET", "Tc", "Tw", "Tz", "TL", "Tf", "Tr", "Ts", "Td", "TD", "Tm", "T*"),
    }
)
"""Operators without an effect of their own between ``q`` and ``Q``."""
_INVISIBLE = 3
_SILENT = "-silent"
"""Behind the name of a font."""
_EMBEDDED = ("/FontFile", "/FontFile2", "/FontFile3")


class OwnText:
    """Removes text from the pages of one document."""

    def __init__(self, pdf: pikepdf.Pdf) -> None:
        self._pdf = pdf
        self._silent: dict[tuple[int, int], Any] = {}
        """Silent copies by the original font, which many pages share."""
        self._maps: dict[int, Any] = {}

    def take_out(self, page: Any, *, visible: bool) -> bool:
        """Remove invisible text, and visible text if requested. The page gets its own resources.

        Returns:
            Whether it is out; a page whose content is too large stays as it is.
        """
        # Taking content apart takes many times its size: what is too large keeps its text.
        if not is_small(page.obj):
            page.obj.Resources = _copy(page.obj.get("/Resources"))
            return False
        hidden: set[str] = set()
        page.contents_coalesce()
        if (content := page.obj.get("/Contents")) is not None and sets_modes(content.read_bytes()):
            data, hidden = _without_invisible(page.obj)
            page.obj.Contents = Stream(self._pdf, data)
        self._own_resources(page.obj, {}, hidden, visible=visible)
        return True

    def _own_resources(
        self, holder: Any, forms: dict[tuple[int, int], Any], hidden: set[str], *, visible: bool
    ) -> None:
        """Give a page or form its own resources, with forms and fonts whose text is removed.

        Args:
            holder: The page or form.
            forms: Finished forms of the page, by their source.
            hidden: Names of the fonts of invisible text that is needed for its width.
            visible: Whether visible text is removed as well.
        """
        holder.Resources = resources = _copy(holder.get("/Resources"))
        if visible or hidden:
            originals = _copy(resources.get("/Font"))
            resources.Font = fonts = _copy(originals)
            for name, font in list(originals.items()):
                if visible:
                    fonts[name] = self._silenced(font)
                if name in hidden:
                    fonts[name + _SILENT] = self._silenced(font, is_hidden=True)
        resources.XObject = objects = _copy(resources.get("/XObject"))
        for name, each in list(objects.items()):
            if not isinstance(each, Stream) or each.get("/Subtype") != Name.Form or len(forms) >= MAX_FORMS:
                continue
            if each.objgen not in forms:  # else one that holds itself would have no end
                form, hidden_there = self._form(each)
                forms[each.objgen] = form
                self._own_resources(form, forms, hidden_there, visible=visible)
            objects[name] = forms[each.objgen]

    def _form(self, original: Any) -> tuple[Any, set[str]]:
        """A copy of a form without invisible text, and the fonts of such that is needed for its width."""
        data, hidden = original.read_bytes(), set[str]()
        if sets_modes(data):
            data, hidden = _without_invisible(original)
        form = Stream(self._pdf, data)
        for key, value in original.items():
            if key not in ("/Length", "/Filter", "/DecodeParms"):
                form[key] = value
        return self._pdf.make_indirect(form), hidden

    def _silenced(self, font: Any, *, is_hidden: bool = False) -> Any:
        """A copy of a font whose characters are white space to programs that read text.

        Args:
            font: The font.
            is_hidden: Nothing is seen of its glyphs.
        """
        # Damaged, which viewers forgive.
        if not isinstance(font, Dictionary):
            return font
        composite = font.get("/Subtype") == Name.Type0
        if composite and not (
            is_hidden or _is_embedded(font)
        ):  # viewers choose the glyphs of such a font by its Unicode values
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


def _without_invisible(holder: Any) -> tuple[bytes, set[str]]:
    """The content of a page or form without the text that it draws in the invisible mode.

    Where visible text follows on the same line, the invisible text before it stays, in a silent font: it moves what
    follows by its width.

    Returns:
        The content, and the names of the fonts of which it needs a silent copy.
    """
    fonts = _copy(_copy(holder.get("/Resources")).get("/Font"))
    reader = _Content({name for name, font in fonts.items() if isinstance(font, Dictionary)})
    for instruction in pikepdf.parse_content_stream(holder):
        reader.take(instruction)
    return pikepdf.unparse_content_stream([each for group in reader.kept for each in group]), reader.silent


class _Content:
    """Takes the instructions of a page one by one, and keeps those that remain."""

    def __init__(self, fonts: set[str]) -> None:
        self.kept: list[list[Any]] = []
        self.silent: set[str] = set()
        """Names of fonts."""
        self._fonts = fonts
        self._mode = 0
        self._font: list[Any] = []
        """Name and size."""
        self._outer: list[tuple[int, list[Any]]] = []
        self._hidden: list[tuple[list[Any], list[Any], Any]] = []
        """Invisible text since the last move, which is kept if it is needed: its place, font and instruction."""
        self._groups: list[int] = []
        """Where each open ``q`` is, as long as nothing was shown since."""

    def take(self, instruction: Any) -> None:
        """Take the next instruction."""
        operator, operands = str(instruction.operator), list(instruction.operands)
        if operator in _MOVING:
            self._hidden.clear()
        if operator in _SHOWING:
            self._show(instruction, operator, operands)
            return
        if operator not in _SHOWING_NOTHING:
            self._groups.clear()
        if operator == "q":
            self._outer.append((self._mode, self._font))
            self._groups.append(len(self.kept))
        elif operator == "Q" and self._outer:
            self._mode, self._font = self._outer.pop()
            if self._groups:  # what is left of our own invisible text, which would pile up with each export
                del self.kept[self._groups.pop() :]
                return
        elif operator == "Tr" and operands:
            self._mode = int(operands[0])
        elif operator == "Tf" and len(operands) == 2:
            self._font = operands
        self.kept.append([instruction])

    def _show(self, instruction: Any, operator: str, operands: list[Any]) -> None:
        if self._mode != _INVISIBLE:
            for place, font, hidden in self._hidden:
                place.extend(self._silenced(font, hidden))
            self._hidden.clear()
            self._groups.clear()
            self.kept.append([instruction])
            return
        if operator == '"' and len(operands) == 3:  # it sets the spacing of what follows, too
            self.kept.append([_instruction(operands[:1], "Tw"), _instruction(operands[1:2], "Tc")])
        if operator in ("'", '"'):
            self.kept.append([_instruction([], "T*")])
            instruction = _instruction(operands[-1:], "Tj")
        self.kept.append(place := [])
        self._hidden.append((place, self._font, instruction))

    def _silenced(self, font: list[Any], instruction: Any) -> list[Any]:
        """An instruction that shows text in a font, in its silent copy where there is one."""
        name = str(font[0]) if font else ""
        if name not in self._fonts:
            return [instruction]
        self.silent.add(name)
        silent = _instruction([Name(name + _SILENT), font[1]], "Tf")
        return [silent, instruction, _instruction(font, "Tf")]


def _instruction(operands: Iterable[Any], operator: str) -> Any:
    return ContentStreamInstruction(list(operands), Operator(operator))
