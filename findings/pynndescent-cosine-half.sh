#!/usr/bin/env bash
# PyNNDescent: with metric "cosine" an opposite vector has the distance 1.0, as an unrelated one has; negative products are not found.
#
# Expected: the distance of metric "cosine" is 1 less the cosine, from 0 to 2, as in SciPy and scikit-learn, and a search among few
# vectors finds nearly all of the true neighbours. "inner_product" ranks by the product, whatever its sign.
# What happens: the search works with -log2 of the cosine or of the product, and takes all that is not positive as infinitely far.
# Such neighbours come back in any order, at 1.0 or, for products, at 0.0. Where the best products are negative, as with scores
# that are logarithms, nearly none of them is found. "euclidean" on unit vectors has all.
# Who meets this: maps of topics, tests for novelty by a distance above 1, searches for contradictions and for hard negatives.
# Versions: pynndescent 0.7.0, numba 0.68.1. Source: alternative_cosine and alternative_inner_product of pynndescent/distances.py.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pynndescent==0.7.0 numba==0.68.1 numpy==2.4.6 2>/dev/null

"$folder/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from pynndescent import NNDescent

rng = np.random.default_rng(0)
documents = rng.normal(size=(300, 16)).astype(np.float32)
documents /= np.linalg.norm(documents, axis=1, keepdims=True)
query = documents[:1]
print(*(f"{name} {version(name)}" for name in ("pynndescent", "numba")), sep=", ")
for metric in ("cosine", "euclidean"):
    index = NNDescent(documents, metric=metric, n_neighbors=60, random_state=0)
    found, distances = (rows[0] for rows in index.query(query, k=250, epsilon=0.5))
    if metric == "euclidean":
        distances = distances**2 / 2  # of unit vectors: 1 less the cosine
    true = 1 - (documents @ query[0])[found]
    beyond = true > 1.001
    print(f"{metric}: largest distance {distances.max():.3f}, in truth {true.max():.3f};", end=" ")
    print(f"{beyond.sum()} of 250 are beyond 1, and {np.sum(np.abs(distances - true)[beyond] < 0.001)} of them have their distance")
    assert beyond.sum() > 80 and np.allclose(distances[beyond], 1.0 if metric == "cosine" else true[beyond], atol=0.001)

logarithms = np.log(rng.dirichlet(np.ones(8), size=300)).astype(np.float32)  # of probabilities: all negative
weights = rng.dirichlet(np.ones(8), size=20).astype(np.float32)
index = NNDescent(logarithms, metric="inner_product", n_neighbors=30, random_state=0)
found, distances = index.query(weights, k=10)
true = np.argsort(-(weights @ logarithms.T), axis=1)[:, :10]
share = np.mean([len(set(mine) & set(best)) for mine, best in zip(found, true)])
print(f"inner_product, all products negative: {share:.1f} of the ten best, distances {distances.min():.1f} to {distances.max():.1f}")
assert share < 3 and not distances.any()
PYTHON
