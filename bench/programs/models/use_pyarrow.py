"""Groups a table, and writes and reads it as Parquet."""

import io

import pyarrow
import pyarrow.compute
import pyarrow.parquet
import steady


def work():
    table = pyarrow.table({"a": [number % 7 for number in range(100_000)], "b": list(range(100_000))})
    sums = table.group_by("a").aggregate([("b", "sum")]).sort_by("a").to_pydict()
    file = io.BytesIO()
    pyarrow.parquet.write_table(table, file)
    return sums, pyarrow.compute.sum(table["b"]), pyarrow.parquet.read_table(file).num_rows


steady.run(work)
