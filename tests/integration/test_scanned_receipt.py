"""A pale receipt, a little askew, through the real engines: labels and values stay in one row."""

import pytest
from drawn_sheets import Sheet
from PIL import Image
from scanned_sheets import scan

import pagemill

pytestmark = [pytest.mark.integration, pytest.mark.slow]

GOODS = (
    ("Lamp oil", "8.40"),
    ("Twine", "15.00"),
    ("Rye bread", "3.20"),
    ("Smoked herring", "11.05"),
    ("TOTAL", "37.65"),
)


def test_a_pale_receipt_stays_in_rows(tmp_path):
    sheet = Sheet()
    sheet.put(130, 80, "QUAY STORES", "Courier", 12)
    for number, (label, value) in enumerate(GOODS):
        sheet.put(72, 110 + 14 * number, label, "Courier", 10)
        sheet.right(290, 110 + 14 * number, value, "Courier", 10)
    pixels, _ = scan(sheet, tmp_path, dpi=178, contrast=0.5, skew=0.7)
    path = tmp_path / "receipt.png"
    Image.fromarray(pixels[100:700, 100:800]).save(path)
    markdown = pagemill.parse(path).markdown
    for label, value in GOODS:
        assert f"| {label} | {value} |" in markdown
