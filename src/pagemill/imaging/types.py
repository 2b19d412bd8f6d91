"""Array types shared by everything that touches pixels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Pixels = NDArray[np.uint8]
"""A page or crop: shape (height, width, 3), dtype uint8, channels in RGB order, C-contiguous unless said otherwise."""
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Indices = NDArray[np.intp]
