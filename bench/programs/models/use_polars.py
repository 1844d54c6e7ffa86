"""Groups, streams, writes and reads on polars' own threads."""

import os
import tempfile

import polars
import steady


def work():
    frame = polars.DataFrame({"a": [number % 7 for number in range(100_000)], "b": range(100_000)})
    sums = frame.group_by("a").agg(polars.col("b").sum()).sort("a")
    counts = frame.lazy().filter(polars.col("b") > 5).group_by("a").agg(polars.len()).sort("a").collect(engine="streaming")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "frame.csv")
        frame.write_csv(path)
        last = polars.read_csv(path).tail(2)
    return sums.rows(), counts.rows(), last.rows()


steady.run(work)
