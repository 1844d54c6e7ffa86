"""Sums up a CSV file of expenses by category, in a table.

The ordinary way, and frozen:

    python spending.py expenses.csv

    snapboot freeze -o spending.img --preload expenses,rich.console -- python spending.py
    ./spending.img expenses.csv
"""

import click
from expenses import read_expenses, table_of
from rich.console import Console


@click.command()
@click.argument("file", type=click.File(encoding="utf-8"))
@click.option("--since", default="0000-00-00", help="Leave out what is older than this date.")
def main(file, since):
    """Sum up FILE by category."""
    spent = [expense for expense in read_expenses(file) if expense.day.isoformat() >= since]
    Console().print(table_of(spent))


if __name__ == "__main__":
    main()
