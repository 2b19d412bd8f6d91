"""For tests, benchmarks and plugin authors: a stub model server, drawn pages, random checkpoints."""
