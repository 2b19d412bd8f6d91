"""One module per verb: what a command does, without its command line."""
