"""Packages laid out in a folder as pip installs them, for ``PYTHONPATH`` or ``sys.path``."""

from pathlib import Path


def install_package(folder: Path, name: str, entry_points: str, summary: str = "", **modules: str) -> Path:
    """Install a package of these modules, given as source code; return the folder."""
    metadata = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\nSummary: {summary}\n")
    (metadata / "entry_points.txt").write_text(entry_points)
    for module, code in modules.items():
        (folder / f"{module}.py").write_text(code, encoding="utf-8")
    return folder
