"""Text recognition: line images to text."""
