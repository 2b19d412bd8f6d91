"""The version, also of the packages beside this one: a test compares their ``pyproject.toml`` with it."""

__version__ = "0.2.0.dev0"
