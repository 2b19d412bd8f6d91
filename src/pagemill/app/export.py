"""Exports a run: reads the records of a run directory one at a time and writes them in another format."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from pagemill._version import __version__
from pagemill.app.export_content import ExportContent
from pagemill.app.export_options import ExportOptions
from pagemill.document.page import PageResult
from pagemill.errors import UsageError
from pagemill.export.target import whole_file, whole_folder

if TYPE_CHECKING:
    from pagemill.store.reading import RunReader


class Exporter:
    """Exports the current content of a run directory, once.

    Args:
        reader: The run.
        options: Format and filters.
        report: Called with each exported page.
    """

    def __init__(
        self, reader: RunReader, options: ExportOptions, report: Callable[[PageResult], None] | None = None
    ) -> None:
        self._content = ExportContent(reader, options, report)
        self.outcome = self._content.outcome
        """What was exported so far."""
        self._out = reader.path
        self._options = options
        self._format = options.traits

    def to_table(self, uri: str) -> dict[str, int]:
        """Write the export into a table; see :func:`pagemill.app.export_lance.export_to_lance`."""
        assert self._format.to_table is not None
        # A table in object storage cannot be inside a directory of this machine.
        if "://" not in uri:
            self._refuse_overlap(Path(uri))
        return self._format.to_table(self._content, uri)

    def to_path(self, target: Path) -> None:
        """Write the export to a file or folder, which appears when it is complete.

        Raises:
            OutputError: The target exists, is inside the run directory or cannot be written; NoSpaceError when the disk
                is full.
            InputError: There is no page to export.
            DamagedRunError: The run cannot be read at all.
        """
        out, place = self._refuse_overlap(target)
        options = self._options
        if options.is_file:
            with whole_file(target, overwrite=options.overwrite) as stream:
                # Relative, so that the file and the run can move together.
                root = f"{Path(os.path.relpath(out, place.parent)).as_posix()}/"
                self._to_file(stream, root)
            return
        manifest: dict[str, Any] = {"generator": "pagemill", "version": __version__, "format": options.format}
        with whole_folder(target, overwrite=options.overwrite, manifest=manifest) as folder:
            if options.with_crops:
                (folder / "crops").mkdir()
            if self._format.to_folder is not None:
                self._format.to_folder(self._content, folder)
            elif self._format.text is not None:
                self._content.write_each(folder, self._format.suffix, self._format.text)
            # Written last, by the block's end: a folder with these numbers is complete.
            manifest |= {"pages": self.outcome.pages, "documents": self.outcome.documents}

    def _refuse_overlap(self, target: Path) -> tuple[Path, Path]:
        out, place = self._out.resolve(), target.resolve()
        # Within the run it would count as part of it; around the run, --overwrite would delete the run.
        if place.is_relative_to(out) or out.is_relative_to(place):
            raise UsageError(
                f"{target} and the run directory {self._out} overlap", remedy="Choose another target with -o."
            )
        return out, place

    def to_stream(self, stream: BinaryIO) -> None:
        """Write the export to a stream; crops are named relative to the run directory.

        Raises:
            UsageError: The format is not a single text file.
            InputError: There is no page to export.
            DamagedRunError: The run cannot be read at all.
        """
        if not self._options.is_text:
            raise UsageError(
                f"--format {self._options.format} cannot be written to a stream",
                remedy="Choose a target with -o; or add --single to --format markdown.",
            )
        self._to_file(stream, "")

    def _to_file(self, stream: BinaryIO, crops_root: str) -> None:
        assert self._format.to_file is not None
        self._format.to_file(self._content, stream, crops_root)
