"""``python -m pagemill``."""

from pagemill.cli import main

if __name__ == "__main__":
    main()
