"""The embedded table model on a table drawn here."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from drawn_tables import blank, line_at, print_lines, texts

from pagemill.tables.recognize import recognize_table
from pagemill.tables.structure_model import SlanetPlus, packaged_model

pytestmark = pytest.mark.integration


@pytest.mark.slow
def test_the_model_reads_a_table_without_rules_and_says_the_same_on_every_thread():
    page = blank()
    lines = [line_at(text, 50 + 280 * column, 50) for column, text in enumerate(("Kind", "What it is", "Number"))]
    for row in range(5):
        top = 120 + 90 * row
        lines.append(line_at(f"Item {row}", 50, top + 14))
        lines += [line_at("A long description", 330, top), line_at("In two lines of it", 330, top + 28)]
        lines.append(line_at(f"{row + 1},200", 610, top + 14))
    print_lines(page, lines)
    box = (40.0, 40.0, 720.0, 570.0)
    table = recognize_table(page, box, lines, packaged_model)
    assert table is not None
    assert table.method == SlanetPlus.name
    assert texts(table) == [
        ["Kind", "What it is", "Number"],
        *([f"Item {row}", "A long description In two lines of it", f"{row + 1},200"] for row in range(5)),
    ]
    with ThreadPoolExecutor(4) as threads:
        assert set(threads.map(lambda _: recognize_table(page, box, lines, packaged_model), range(8))) == {table}
