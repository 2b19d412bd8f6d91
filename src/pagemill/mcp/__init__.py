"""Tools for assistants: parse documents, read their pages and tables, search them (Model Context Protocol)."""
