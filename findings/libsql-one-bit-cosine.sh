#!/usr/bin/env bash
# libSQL: vector_distance_cos() of two vectors of 1 bit is the number of bits that differ: 96 at most of 96, where F8_BLOB has 2 at most.
#
# Expected: one function, one scale. FLOAT1BIT stands for -1 and +1 (vector_extract() gives them back so), whose cosine distance is
# twice the share of bits that differ, between 0 and 2, near that of the floats; other distances are refused, as L2 is.
# What happens: it is the Hamming distance, undivided. Unrelated vectors of 96 values have a distance near 48 (52 below), and not 1, and
# a limit such as "< 0.3", which holds for all other types, keeps nothing but copies. The order is that of the cosine.
# Who meets this: whoever makes the vectors of a SQLite file smaller by changing the column type, or sorts and filters 1-bit candidates
# together with others. The distance has to be divided by half the dimension.
# Versions: libsql 0.1.11. Source: none found; seen by running this.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check libsql==0.1.11 numpy==2.4.6 2>/dev/null

"$folder/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import libsql
import numpy as np

WIDTH = 96
connection = libsql.connect(":memory:")
random = np.random.default_rng(0)
query = np.where(random.random(WIDTH) < 0.5, -1.0, 1.0)
near, far = query.copy(), np.where(random.random(WIDTH) < 0.5, -1.0, 1.0)
near[:10] *= -1


def distance(kind: str, one: np.ndarray, other: np.ndarray) -> float:
    call = f"SELECT vector_distance_cos({kind}(?), {kind}(?))"
    return connection.execute(call, (str(one.tolist()), str(other.tolist()))).fetchone()[0]


print("libsql", version("libsql"))
for name, other in (("itself", query), ("10 values turned", near), ("an unrelated one", far), ("the opposite", -query)):
    differing = int((query != other).sum())
    by_kind = {kind: round(distance(kind, query, other), 3) for kind in ("vector32", "vector8", "vector1bit")}
    print(f"distance from {name}, {differing} of {WIDTH} bits differ: {by_kind}")
    assert by_kind["vector1bit"] == differing
    assert abs(by_kind["vector32"] - 2 * differing / WIDTH) < 0.001 and abs(by_kind["vector8"] - 2 * differing / WIDTH) < 0.02
extracted = connection.execute("SELECT vector_extract(vector1bit('[0.3, -0.2, 0.1, -0.9]'))").fetchone()[0]
print("vector_extract() of 1 bit:", extracted)
assert extracted == "[1,-1,1,-1]"
try:
    connection.execute("SELECT vector_distance_l2(vector1bit('[1, 1]'), vector1bit('[1, -1]'))").fetchone()
    raise SystemExit("vector_distance_l2() takes vectors of 1 bit now")
except ValueError as error:
    print("vector_distance_l2():", error)
PYTHON
