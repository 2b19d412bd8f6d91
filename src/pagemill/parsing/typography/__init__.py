"""The structure of a born-digital page by what its PDF says: places, fonts and drawn lines; no pixels, no model."""
