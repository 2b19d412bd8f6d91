"""Sources of the sample documents: their words, how they are set, and what is true about them."""
