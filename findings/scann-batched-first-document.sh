#!/usr/bin/env bash
# ScaNN: search_batched() fills a list that is too short with the first document, at the distance NaN; search() gives the short list.
#
# Expected: where the leaves that are searched hold fewer documents than were wanted, a batch gives what single queries give: short lists,
# or a place that no document has, as the -1 of FAISS.
# What happens: the rows of a batch get the width of its longest list, and the rest of each row is index 0, as often as needed. With document
# ids (docids) it is the first of them. Row 0 is a real document, and it is also in the list where it was found. The width depends on
# the other queries of the batch. NaN is not removed by "drop all below a limit", and ranks computed from indices do not see it.
# Who meets this: whoever takes many candidates (for a reranker, or to fuse lists) from few leaves: half of a list can be one document.
# Versions: scann 1.4.2. Source: none found; scann/docs/algorithms.md of google-research/google-research does not mention short lists.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check scann==1.4.2 numpy==2.4.6 2>/dev/null

"$folder/venv/bin/python" - 2>/dev/null <<'PYTHON'
from importlib.metadata import version

import numpy as np
import scann

LEAVES, WANTED = 100, 500
vectors = np.random.default_rng(0).normal(size=(2000, 16)).astype("float32")
names = [f"document {number}" for number in range(len(vectors))]


def build(docids: list[str] | None = None) -> scann.scann_ops_pybind.ScannSearcher:
    builder = scann.scann_ops_pybind.builder(vectors, WANTED, "dot_product")
    builder = builder.tree(num_leaves=LEAVES, num_leaves_to_search=2, training_sample_size=len(vectors)).score_brute_force()
    return builder.build(docids=docids)


print("scann", version("scann"))
queries = vectors[:200]
searcher = build()
singles = [len(searcher.search(query)[0]) for query in queries]
indices, distances = searcher.search_batched(queries)
lengths = (~np.isnan(distances)).sum(axis=1)
print(f"wanted {WANTED}; single searches return {min(singles)} to {max(singles)}; shape of the batch {indices.shape}")
assert indices.shape[1] == lengths.max() > lengths.min() and max(singles) < WANTED and min(singles) < max(singles)
for length, row, values in zip(lengths, indices, distances):
    assert np.isnan(values[length:]).all() and not row[length:].any()
shortest = int(lengths.argmin())
print(f"the row with the shortest list: {indices[shortest].tolist()}")
twice = sum(0 in row[:length] for length, row in zip(lengths, indices) if length < len(row))
print(f"document 0 is {1 - lengths.sum() / indices.size:.0%} of the batch; in {twice} rows it is a result and fills besides")
assert lengths.sum() < 0.8 * indices.size and twice > 0
labels, _ = build(names).search_batched(queries)
print("with ids of documents the same row ends with", min(labels, key=lambda row: len(set(row)))[-3:])
assert max(row.count(names[0]) for row in labels) > 10
PYTHON
