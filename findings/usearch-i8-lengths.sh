#!/usr/bin/env bash
# usearch: with dtype="i8" an index of metric "ip" or "l2sq" ranks by cosine: 3 of 10 results are right, and "f16" has all 10.
#
# Expected: dtype is how a vector is stored. Bytes are coarse and cost some results, as they do for "cos", where 9.6 of 10 are right;
# e4m3, which is also one byte, has 9.5 of 10 in all three metrics.
# What happens: each vector is scaled to a length of 100 before it is rounded, so its length is not stored at all. Inner products and
# distances are those of the unit vectors, times 10,000. Adding, searching and metric_kind show nothing of it. Vectors that
# NumPy holds as int8 already are stored as they are, and ranked rightly.
# Who meets this: whoever makes an index smaller whose vectors carry a weight in their length: learned sparse or late-interaction
# models trained for inner products, sums of word vectors, mean vectors of chunks.
# Versions: usearch 2.26.6. Source: none found for this; issue 405 of unum-cloud/USearch is about an older fault of i8 with "ip".
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check usearch==2.26.6 numpy==2.4.6 2>/dev/null

"$folder/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from usearch.index import Index

WIDTH, K = 32, 10
random = np.random.default_rng(0)
vectors = (random.normal(size=(3000, WIDTH)) * random.uniform(0.2, 2, size=(3000, 1))).astype("float32")
queries = random.normal(size=(100, WIDTH)).astype("float32")
products = queries @ vectors.T
squares = (vectors**2).sum(axis=1)
SCORES = {"ip": products, "l2sq": 2 * products - squares, "cos": products / np.sqrt(squares)}
BEST = {metric: np.argsort(-scores, axis=1)[:, :K] for metric, scores in SCORES.items()}


def share(found: np.ndarray, best: np.ndarray) -> float:
    return float(np.mean([len(np.intersect1d(a, b)) / K for a, b in zip(found, best)]))


def right(dtype: str, metric: str) -> tuple[float, float]:
    index = Index(ndim=WIDTH, metric=metric, dtype=dtype)
    index.add(np.arange(len(vectors)), vectors)
    found = index.search(queries, K, exact=True).keys
    shares = share(found, BEST[metric]), share(found, BEST["cos"])
    print(f"{dtype}, {metric}: share of the {K} best {shares[0]:.3f}, of the {K} best by cosine {shares[1]:.3f}")
    return shares


print("usearch", version("usearch"))
for metric in ("ip", "l2sq", "cos"):
    assert right("f16", metric)[0] > 0.98 and right("e4m3", metric)[0] > 0.9
    true, cosine = right("i8", metric)
    assert cosine > 0.93 and (true < 0.5) == (metric != "cos")
index = Index(ndim=WIDTH, metric="ip", dtype="i8")
index.add(np.arange(2), np.stack([vectors[0], 3 * vectors[0]]))
print("a vector and three times it are stored as", index.get(0)[:4], "and", index.get(1)[:4])
assert np.array_equal(index.get(0), index.get(1))
PYTHON
