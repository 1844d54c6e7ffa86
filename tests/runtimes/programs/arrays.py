"""numpy's linear algebra with the threads of OpenBLAS, pandas, and both in threads and in forked children."""

import concurrent.futures
import io
import os

import numpy as np
import pandas as pd


def rounded(value):
    return np.round(np.asarray(value, dtype=float), 6).ravel()[:6].tolist()


def factorise(seed):
    matrix = np.random.RandomState(seed).standard_normal((300, 300))
    _, values, _ = np.linalg.svd(matrix)
    solution = np.linalg.solve(matrix, np.ones(300))
    return rounded(values), bool(np.allclose(matrix @ solution, 1)), rounded(np.linalg.eigvalsh(matrix + matrix.T))


print(factorise(1))
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    print(list(pool.map(factorise, range(4))))
big = np.ones((1500, 1500))
print((big @ big).sum(), np.fft.fft(np.arange(64.0)).real[:3].round(6).tolist())
grown = np.arange(10)
grown.resize(3_000_000, refcheck=False)
print(int(grown.sum()), int(np.zeros(5_000_000).sum()))
print(np.random.default_rng(7).integers(0, 100, 5).tolist(), np.random.default_rng().random() != np.random.default_rng().random())

frame = pd.DataFrame({"key": list("abca") * 1000, "value": np.arange(4000.0), "when": pd.date_range("2024-01-01", periods=4000, freq="h")})
print(frame.groupby("key")["value"].agg(["sum", "mean"]).to_string())
print(frame.set_index("when")["value"].resample("30D").mean().to_string())
print(frame.merge(frame.head(2), on="key").shape, frame["when"].dt.tz_localize("+01:00").iloc[4:6].to_list())
print(pd.read_csv(io.StringIO("a,b\n1,x\n2,\n")).to_dict())
print(frame.describe().to_string())

pid = os.fork()
if pid == 0:
    os._exit(0 if factorise(1) == factorise(1) else 1)
print(os.waitpid(pid, 0)[1])
print(os.readlink("/proc/self/exe"))
