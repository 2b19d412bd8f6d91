"""Fields of word processors: what is shown of their instructions, which DOCX and RTF have alike."""

from __future__ import annotations

import re

from pagemill.document.marks import safe_target
from pagemill.document.page import Mark
from pagemill.readers.base import Marks

_LINK = re.compile(r'\s*HYPERLINK\s+"([^"]+)"')
_SWITCH = re.compile(r'\\\*\s*(?:"[^"]*"|\S+)|\\[A-Za-z]+ ?-?\d*')


def field_text(instruction: str) -> str:
    """Text of a field from its instruction: the label of a button, the operands of an old formula."""
    name, _, rest = instruction.strip().partition(" ")
    if name.upper() in ("MACROBUTTON", "GOTOBUTTON"):
        return rest.strip().partition(" ")[2]
    return _SWITCH.sub("", rest).strip() if name.upper() == "EQ" else ""


def field_link(instruction: str) -> Marks:
    """The link of a field."""
    match = _LINK.match(instruction)
    target = safe_target(match[1]) if match else None
    return ((Mark.LINK, target),) if target else ()
