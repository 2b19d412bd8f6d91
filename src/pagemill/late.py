"""What takes long to make and many runs never use: modules and patterns that are made when they are first used.

``from pagemill.late import cv2`` stands in place of ``import cv2``; where few modules need one, :class:`Late` stands
beside an import for type checkers. With ``from pagemill.late import re``, a module's regular expressions are compiled
when they are first used: most of them serve few documents, and all together take as long as three pages.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import TYPE_CHECKING, Any


class Late(ModuleType):
    """Stands for the module of this name until something of it is used."""

    def __getattr__(self, name: str) -> Any:
        value = getattr(importlib.import_module(self.__name__), name)
        setattr(self, name, value)  # found without this method from now on
        return value


class _Pattern:
    """Stands for a compiled regular expression."""

    def __init__(self, *arguments: Any) -> None:
        self._arguments = arguments

    def __getattr__(self, name: str) -> Any:
        import re

        value = getattr(re.compile(*self._arguments), name)  # which keeps what it has compiled
        setattr(self, name, value)
        return value


if TYPE_CHECKING:
    import re as re

    import cv2 as cv2
    import kornia_rs as kornia_rs
    from lxml import etree as etree
    from lxml import html as html
    from PIL import Image as PillowImage
else:
    re = Late("re")
    re.compile = _Pattern
    cv2 = Late("cv2")
    kornia_rs = Late("kornia_rs")
    etree = Late("lxml.etree")
    html = Late("lxml.html")
    PillowImage = Late("PIL.Image")

__all__ = ["Late", "PillowImage", "cv2", "etree", "html", "kornia_rs", "re"]
