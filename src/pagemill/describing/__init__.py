"""The second pass: what figures, charts, tables and formulas show, as a model describes them."""
