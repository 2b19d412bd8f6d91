"""Lazy imports and lazily compiled regular expressions, for a fast start.

Use ``from pagemill.late import cv2`` instead of ``import cv2``. Where only a few modules need a library, create a
:class:`Late` next to an import under ``TYPE_CHECKING``. ``from pagemill.late import re`` makes ``re.compile`` lazy:
most patterns serve few documents, and compiling all of them takes as long as parsing three pages.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import TYPE_CHECKING, Any


class Late(ModuleType):
    """A module that is imported when the first of its attributes is used."""

    def __getattr__(self, name: str) -> Any:
        value = getattr(importlib.import_module(self.__name__), name)
        setattr(self, name, value)  # found without this method from now on
        return value


class _Pattern:
    """A regular expression that is compiled on first use. Call its methods: functions of ``re`` do not accept it."""

    def __init__(self, *arguments: Any) -> None:
        self._arguments = arguments

    def __getattr__(self, name: str) -> Any:
        import re

        value = getattr(re.compile(*self._arguments), name)  # re.compile caches the result
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
