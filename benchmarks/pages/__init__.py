"""Drawn pages with exact truth: languages and layouts by seed, as a PDF, as a scan, and as photographs."""
