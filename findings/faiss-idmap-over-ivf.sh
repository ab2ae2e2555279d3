#!/usr/bin/env bash
# FAISS: after one remove_ids(), an IDMap over an IVF index gives nearly every vector the id of another one.
#
# Expected: IndexIDMap keeps ids for any index, and its remove_ids() takes those ids. After one vector is removed, all others
# are still found under their own ids, as with IDMap over Flat, or the call is refused, as on HNSW.
# What happens: the map closes the gap and moves all later ids forward by one, as a flat index does with its vectors. An IVF
# index leaves the numbers of the other vectors as they were. So each of them comes back under the id of its successor.
# remove_ids() returns 1 and ntotal is right.
# Who meets this: a search engine that deletes documents from an index made by the factory string "IDMap,IVF...". IVF takes
# add_with_ids() itself, and then removal is right.
# Versions: faiss-cpu 1.15.1. Source: issues 1379 and 4535 of facebookresearch/faiss (not to be changed).
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check faiss-cpu==1.15.1 numpy==2.4.6 2>/dev/null

"$folder/venv/bin/python" - <<'PYTHON'
import faiss
import numpy as np

FIRST_ID = 1_000_000
vectors = np.random.default_rng(0).normal(size=(2000, 32)).astype("float32")
ids = FIRST_ID + np.arange(len(vectors))


def own_and_next(factory: str) -> tuple[float, float]:
    index = faiss.index_factory(32, factory)
    index.train(vectors)
    index.add_with_ids(vectors, ids)
    if "IVF" in factory:
        faiss.extract_index_ivf(index).nprobe = 16
    removed = index.remove_ids(ids[:1])
    _, nearest = index.search(vectors[1:-1], 1)
    own, following = (float((nearest[:, 0] == ids[1:-1] + step).mean()) for step in (0, 1))
    print(f"{factory}: removed {removed}, {index.ntotal} left; own id {own:.1%}, id of the next vector {following:.1%}")
    return own, following


print("faiss", faiss.__version__)
assert own_and_next("IDMap,Flat")[0] == 1
assert own_and_next("IVF16,Flat")[0] == 1
for factory in ("IDMap,IVF16,Flat", "IDMap2,IVF16,Flat", "IDMap,IVF16,SQ8"):
    own, following = own_and_next(factory)
    assert own == 0 and following == 1
PYTHON
