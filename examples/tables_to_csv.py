"""Write each table of a document to a CSV file.

python examples/tables_to_csv.py [FILE] [FOLDER]
"""

import sys
from pathlib import Path

import pagemill

SAMPLES = Path(__file__).parents[1] / "samples"


def main(source: Path | str = SAMPLES / "report.pdf", folder: Path | str = "tables-out") -> None:
    """Write ``FOLDER/table-N.csv``; a cell over several rows or columns is repeated in each of them."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    for number, table in enumerate(pagemill.parse(source, crops=False).tables, 1):
        path = Path(folder) / f"table-{number}.csv"
        table.to_csv(path)
        print(f"{path}: {table.rows} rows, {table.columns} columns")


if __name__ == "__main__":
    main(*sys.argv[1:])
