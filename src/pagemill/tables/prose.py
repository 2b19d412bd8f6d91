"""Telling running text from the text of tables: in columns, on lined paper, in frames."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pagemill.document.direction import is_right_to_left
from pagemill.document.geometry import as_array, components
from pagemill.document.page import TextLine
from pagemill.tables.thresholds import TABLES
from pagemill.tables.words import is_spaceless, usual_height


def prose_share(lines: Sequence[TextLine]) -> float:
    """Share of characters in paragraphs: lines that go on in the line below, several times, because they are full.

    A line is full if the first word of the next line would not have had room before the end of the widest line of its
    block. Lines of one or two words, and numbers, are no evidence: the cells of a column are often alike.
    """
    total = sum(len(line.text) for line in lines)
    if len(lines) < 2 or len(lines) > TABLES.most_prose_lines:
        return 0.0
    boxes = as_array(line.box for line in lines)
    if is_right_to_left("".join(line.text for line in lines)):
        boxes[:, [0, 2]] = -boxes[:, [2, 0]]
    height = usual_height(lines)
    x1, x2, middle = boxes[:, 0], boxes[:, 2], (boxes[:, 1] + boxes[:, 3]) / 2
    shared = np.minimum(x2[:, None], x2) - np.maximum(x1[:, None], x1)
    distance = middle - middle[:, None]  # of the column's line below the row's
    below = (shared > 0) & (distance > TABLES.same_line * height)
    below &= distance < TABLES.row_distance * height
    following = np.where(below.any(axis=1), np.where(below, distance, np.inf).argmin(axis=1), -1)
    links = [(i, j) for i, j in enumerate(following.tolist()) if j >= 0 and abs(x1[i] - x1[j]) < height]
    right = np.empty(len(lines))
    for block in components(len(lines), links):
        right[block] = x2[block].max()
    goes_on = np.full(len(lines), -1)
    for i, j in links:
        text, words = lines[j].text, lines[j].text.split()
        if words and _tells(lines[i].text):
            advance = (x2[j] - x1[j]) / len(text)
            needed = advance if is_spaceless(text[:1]) else advance * (len(words[0]) + 1)
            if x2[i] + needed > right[i]:
                goes_on[i] = j
    full = 0
    reached = set(goes_on[goes_on >= 0].tolist())
    for start in np.flatnonzero(goes_on >= 0).tolist():
        if start in reached:
            continue
        chain = [start]
        while goes_on[chain[-1]] >= 0:
            chain.append(int(goes_on[chain[-1]]))
        if len(chain) >= TABLES.paragraph_lines:
            full += sum(len(lines[i].text) for i in chain)
    return full / total


def _tells(text: str) -> bool:
    """Whether a line is long enough to be of a paragraph."""
    spaceless = sum(map(is_spaceless, text))
    return len(text.split()) >= TABLES.prose_words or spaceless >= TABLES.prose_characters
