"""A script of his own: renders what a file has, and prepares to send it."""

import argparse
import csv
import pathlib

import jinja2
import requests

HERE = pathlib.Path(__file__).resolve().parent
PAGE = "{% for row in rows %}{{ row.name }}: {{ row.amount }}\n{% endfor %}total: {{ rows | sum(attribute='amount') }}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--to", default="https://example.org/reports")
    options = parser.parse_args()
    with open(HERE / "amounts.csv") as file:
        rows = [
            {"name": row["name"], "amount": int(row["amount"])}
            for row in csv.DictReader(file)
        ]
    text = jinja2.Template(PAGE).render(rows=rows)
    request = requests.Request("POST", options.to, json={"text": text}).prepare()
    print(text, request.method, request.url, request.body, sep="\n")


if __name__ == "__main__":
    main()
