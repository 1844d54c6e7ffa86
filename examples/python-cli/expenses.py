"""Expenses: what one is, how they are read, and how they are shown."""

import collections
import csv
import datetime
import decimal
from collections.abc import Iterable

from pydantic import BaseModel, Field
from rich.table import Table


class Expense(BaseModel):
    """One line of the file."""

    day: datetime.date
    category: str = Field(min_length=1)
    amount: decimal.Decimal = Field(gt=0)


def read_expenses(lines: Iterable[str]) -> list[Expense]:
    """The expenses in CSV `lines` that start with a heading. Raises pydantic.ValidationError for what is none."""
    return [Expense.model_validate(row) for row in csv.DictReader(lines)]


def table_of(expenses: list[Expense]) -> Table:
    """The sum for each category, the largest first."""
    sums: dict[str, decimal.Decimal] = collections.defaultdict(decimal.Decimal)
    for expense in expenses:
        sums[expense.category] += expense.amount
    table = Table("category", "spent", title="Spending")
    table.columns[1].justify = "right"
    for category, spent in sorted(sums.items(), key=lambda item: -item[1]):
        table.add_row(category, f"{spent:,.2f}")
    return table
