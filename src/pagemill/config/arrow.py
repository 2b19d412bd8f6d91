"""pyarrow, imported on first use: 170 MB that only datasets, Parquet and vectors need."""

from __future__ import annotations

import importlib
from typing import Any

from pagemill.errors import lacks_extra


class _LazyModule:
    """A module that is imported when one of its attributes is used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __reduce__(self) -> tuple[type[_LazyModule], tuple[str]]:
        return _LazyModule, (self._name,)  # an instance without its name would ask itself for it without end

    def __getattr__(self, attribute: str) -> Any:
        try:
            module = importlib.import_module(self._name)
        except ImportError as error:
            raise lacks_extra("datasets, Parquet files and vectors need pyarrow", "datasets") from error
        return getattr(module, attribute)


pa = _LazyModule("pyarrow")
pq = _LazyModule("pyarrow.parquet")
