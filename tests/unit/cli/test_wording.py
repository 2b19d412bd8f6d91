"""How the command line says numbers."""

from pagemill.cli.wording import shares


def test_shares_come_largest_first_without_what_hardly_counts():
    assert shares({"decode": 1.0, "layout": 3.0, "crops": 0.001}) == ["layout 75%", "decode 25%"]
    assert shares({}) == shares({"layout": 0.0}) == []
