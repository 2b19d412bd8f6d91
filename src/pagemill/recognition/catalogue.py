"""The recognizers that come with pagemill, by the names that plans use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pagemill.recognition.languages import Plan, plan, primary_subtag, same_script

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pagemill.recognition.base import TextRecognizer

PRIMARY = "rapidocr"


def open_recognizers(languages: Sequence[str] | None, threads: int = 1) -> tuple[Plan, dict[str, TextRecognizer]]:
    """Load the recognizers that some languages need, and say which reads what.

    Args:
        languages: BCP-47 primary subtags; None opens all that may be met when scripts are detected.
        threads: Compute threads inside one call of a model.

    Raises:
        MissingDependencyError: A package or program is not installed.
        LanguageError: No engine reads a language, or its data is not installed.
    """
    from pagemill.recognition import rapidocr_engine, tesseract_engine

    recognizers: dict[str, TextRecognizer] = {
        PRIMARY: rapidocr_engine.create(rapidocr_engine.RapidOcrSettings(threads=threads))
    }
    covered = recognizers[PRIMARY].languages
    if languages is None:
        wanted = sorted(tesseract_engine.installed_languages() - covered)
        wanted = [code for code in wanted if not same_script(code, covered)]
    else:
        wanted = [code for code in dict.fromkeys(primary_subtag(tag) for tag in languages) if code not in covered]
    for code in wanted:
        settings = tesseract_engine.TesseractSettings(languages=(code,))
        recognizers[f"tesseract:{code}"] = tesseract_engine.create(settings)
    coverage = {name: recognizer.languages for name, recognizer in recognizers.items()}
    return plan(languages, coverage, PRIMARY), recognizers
