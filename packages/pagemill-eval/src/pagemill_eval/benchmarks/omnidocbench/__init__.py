"""OmniDocBench: pages with their elements, matched with those of the predicted Markdown."""
