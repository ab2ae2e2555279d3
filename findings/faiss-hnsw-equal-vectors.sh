#!/usr/bin/env bash
# FAISS: an HNSW index of 5,000 vectors, 1,000 of them equal, returns 50 results for k = 1,000 though efSearch is 1,200.
#
# Expected: with efSearch of 1,200 the search keeps 1,200 candidates, so 1,000 results come back. Equal vectors may hide one
# another, but the remaining places are filled with other vectors of the 5,000.
# What happens: 50 results come back, 40 of them copies. The likely cause is that links of copies lead to copies only, so the walk
# soon has no candidate left. All other places of the answer are -1. Without equal vectors all 1,000 places are filled.
# Who meets this: collections with copied passages: footers, licences, empty pages that get one vector.
# Versions: faiss-cpu 1.15.1. Source: issue 479 of nmslib/nmslib (a maintainer names copies as the likely cause of short answers).
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check faiss-cpu==1.15.1 numpy==2.4.6 2>/dev/null

"$folder/venv/bin/python" - <<'PYTHON'
import faiss
import numpy as np

K, COPIES = 1000, 1000
faiss.omp_set_num_threads(1)


def results(copies: int) -> int:
    random = np.random.default_rng(0)
    vectors = random.normal(size=(5000, 32)).astype("float32")
    equal = random.permutation(len(vectors))[: max(copies, 1)]
    vectors[equal] = vectors[equal[0]]
    index = faiss.IndexHNSWFlat(32, 16)
    index.hnsw.efSearch = 1200
    index.add(vectors)
    _, nearest = index.search(vectors[equal[:1]], K)
    ids = nearest[0][nearest[0] >= 0]
    print(f"{copies} equal vectors: {len(ids)} results, {len(np.intersect1d(ids, equal))} of them equal to the query")
    return len(ids)


print("faiss", faiss.__version__)
assert results(0) == K
assert results(COPIES) < 200
PYTHON
