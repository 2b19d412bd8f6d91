"""Table recognition: a table region's pixels and text lines to an HTML table."""
