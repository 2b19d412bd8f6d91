"""Layout detection and reading order: pixels to labelled regions."""
