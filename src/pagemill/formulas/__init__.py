"""Formulas: LaTeX from the symbols of a text layer by where they stand, and the check of LaTeX that others wrote."""
