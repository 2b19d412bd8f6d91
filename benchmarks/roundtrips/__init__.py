"""Round trips: Markdown set as PDF by many producers, parsed back and compared."""
