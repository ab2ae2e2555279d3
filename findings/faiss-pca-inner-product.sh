#!/usr/bin/env bash
# FAISS: "PCA32,Flat" of 32 dimensions is a mere rotation, and yet finds 4 or 5 of the true 10 best by inner product.
#
# Expected: a PCA that keeps all dimensions loses nothing. It rotates vectors and queries alike, and a rotation changes neither
# distances nor inner products, so an exact index behind it returns what an exact index alone does.
# What happens: the PCA of FAISS subtracts the mean of the training vectors first, from queries too. Distances do not change by
# that; inner products do: each vector gains or loses its product with the mean. Scores are no longer cosines of the unit vectors
# that went in, and half of the results are others. With OPQ, a random rotation (RR), or METRIC_L2 all are right.
# Who meets this: embeddings of unit length, which is to say cosine search; their mean is far from zero in most models.
# Versions: faiss-cpu 1.15.1. Source: issue 2636 of facebookresearch/faiss (open).
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check faiss-cpu==1.15.1 numpy==2.4.6 2>/dev/null

"$folder/venv/bin/python" - 2>/dev/null <<'PYTHON'
import faiss
import numpy as np

WIDTH, K = 32, 10
faiss.omp_set_num_threads(1)
random = np.random.default_rng(0)
vectors = (random.normal(size=(2000, WIDTH)) + 1).astype("float32")
queries = (vectors[:100] + 2 * random.normal(size=(100, WIDTH))).astype("float32")
for rows in (vectors, queries):
    faiss.normalize_L2(rows)


def search(factory: str, metric: int) -> tuple[float, float]:
    """Share of the exact results, and the best score of the first query."""
    index = faiss.index_factory(WIDTH, factory, metric)
    index.train(vectors)
    index.add(vectors)
    scores, ids = index.search(queries, K)
    exact = np.argsort(-(queries @ vectors.T), axis=1)[:, :K]
    recall = np.mean([len(np.intersect1d(a, b)) / K for a, b in zip(ids, exact)])
    name = "L2" if metric == faiss.METRIC_L2 else "inner product"
    print(f"{factory} by {name}: recall of the {K} best {recall:.3f}, best score of the first query {scores[0, 0]:.3f}")
    return float(recall), float(scores[0, 0])


print("faiss", faiss.__version__)
_, cosine = search("Flat", faiss.METRIC_INNER_PRODUCT)
for factory in ("RR32,Flat", "OPQ8_32,Flat"):
    recall, score = search(factory, faiss.METRIC_INNER_PRODUCT)
    assert recall > 0.99 and abs(score - cosine) < 1e-4
assert search("PCA32,Flat", faiss.METRIC_L2)[0] > 0.99
for factory in ("PCA32,Flat", "PCAR32,Flat"):
    recall, score = search(factory, faiss.METRIC_INNER_PRODUCT)
    assert recall < 0.6 and abs(score - cosine) > 0.01
PYTHON
