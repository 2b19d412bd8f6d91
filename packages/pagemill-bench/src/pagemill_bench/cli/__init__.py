"""The commands, each imported only when it runs."""
