#!/usr/bin/env bash
# Voyager: in a space of inner products get_distance() of a query and a stored vector is another number than query() gives, in another order.
#
# Expected: both are 1 less the inner product. get_distance() is there for pairs that a search did not return, and for rescoring; it
# depends on its two arguments alone, as it does in the other two spaces.
# What happens: for search each vector has one more dimension, which makes all as long as the longest one ever added, and a query has 0
# there. get_distance() takes both arguments for stored vectors and adds the product of their added dimensions. So short vectors come
# first, and all values change when a longer vector is added: from -8 at most to -8,637 at most below. In Cosine and Euclidean
# the two agree.
# Who meets this: whoever rescores or merges lists of two Voyager indexes, or sets a threshold on get_distance().
# Versions: voyager 2.2.3. Source: pull request 25 of spotify/voyager has the added dimension; none found for get_distance().
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check voyager==2.2.3 numpy==2.4.6 2>/dev/null

"$folder/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from voyager import Index, Space

WIDTH = 16
random = np.random.default_rng(0)
vectors = (random.normal(size=(50, WIDTH)) * random.uniform(0.3, 2, size=(50, 1))).astype("float32")
query = random.normal(size=WIDTH).astype("float32")


def both(index: Index) -> tuple[np.ndarray, np.ndarray]:
    """Distances of the stored vectors by query(), best first, and by get_distance()."""
    ids, by_query = index.query(query, len(vectors), query_ef=200)
    return by_query, np.array([index.get_distance(query.tolist(), vectors[number].tolist()) for number in ids])


print("voyager", version("voyager"))
for space in (Space.Cosine, Space.Euclidean, Space.InnerProduct):
    index = Index(space, WIDTH, ef_construction=200, random_seed=1)
    index.add_items(vectors, num_threads=1)
    by_query, by_pair = both(index)
    print(f"{space.name}: query() {by_query[:4].round(2)}, get_distance() {by_pair[:4].round(2)}")
    assert np.allclose(by_query, by_pair, atol=1e-3) == (space != Space.InnerProduct)

assert np.allclose(by_query, np.sort(1 - vectors @ query), atol=1e-3)
first = np.argsort(by_pair)[:10]
print("the 10 first by get_distance() have these ranks by query():", sorted((first + 1).tolist()))
assert len(set(first) & set(range(10))) < 8
index.add_item(10 * vectors[np.linalg.norm(vectors, axis=1).argmax()], 1000)
after = [index.get_distance(query.tolist(), vector.tolist()) for vector in vectors]
print(f"with one vector ten times as long: {min(after):.0f} to {max(after):.0f}, before {by_pair.min():.0f} to {by_pair.max():.0f}")
assert max(after) < 10 * by_pair.min()
PYTHON
