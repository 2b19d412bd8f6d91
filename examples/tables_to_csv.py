"""Write each table of a document to a CSV file.

python examples/tables_to_csv.py [FILE] [FOLDER]
"""

import csv
import sys
from pathlib import Path

import pagemill

SAMPLES = Path(__file__).parents[1] / "samples"


def main(source: Path | str = SAMPLES / "report.pdf", folder: Path | str = "tables-out") -> None:
    """Write ``FOLDER/table-N.csv``; a cell over several rows or columns is repeated in each of them."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    for number, table in enumerate(pagemill.parse(source, crops=False).tables, 1):
        grid = [[""] * table.columns for _ in range(table.rows)]
        for cell in table.cells:
            for row in range(cell.row, cell.row + cell.row_span):
                for column in range(cell.column, cell.column + cell.column_span):
                    grid[row][column] = cell.text
        path = Path(folder) / f"table-{number}.csv"
        with path.open("w", encoding="utf-8", newline="") as stream:
            csv.writer(stream).writerows(grid)
        print(f"{path}: {table.rows} rows, {table.columns} columns")


if __name__ == "__main__":
    main(*sys.argv[1:])
