"""The environment of the figures: this machine, and the packages that do the work."""

from __future__ import annotations

import os
import platform
import sys
from importlib import metadata
from typing import Any

_PACKAGES = (
    "pagemill",
    "numpy",
    "simplejpeg",
    "kornia-rs",
    "opencv-python-headless",
    "pillow",
    "torch",
    "torchvision",
    "transformers",
    "nvidia-ml-py",
)


def machine() -> dict[str, Any]:
    """What a figure depends on."""
    installed = {
        distribution.name.lower().replace("_", "-"): distribution.version for distribution in metadata.distributions()
    }
    found: dict[str, Any] = {
        "system": platform.system(),
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "packages": {name: installed[name] for name in _PACKAGES if name in installed},
    }
    if (torch := sys.modules.get("torch")) and torch.cuda.is_available():  # what did not use it need not wait for it
        found["gpu"] = torch.cuda.get_device_name()
    return found
