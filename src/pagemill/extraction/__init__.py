"""Values of a JSON Schema out of parsed documents, each with its place on the page."""
