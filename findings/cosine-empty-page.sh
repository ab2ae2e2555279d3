#!/usr/bin/env bash
# sqlite-vec and DuckDB: a page without words is the best hit of every query, in one of the two ways that each has to ask; LanceDB never returns it.
#
# Expected: a text of which the model knows no word has the zero vector (static, sparse and averaging models give it). Its cosine with a query is
# undefined, so it comes last, or in the middle as 0 (Qdrant, hnswlib, usearch, Voyager, Annoy), and the two ways of one library agree.
# What happens: the cosine is NaN. SQLite has no NaN and makes it NULL, which sorts before all numbers: ORDER BY vec_distance_cosine() begins
# with the empty page, while the ten best of a vec0 table do not have it. DuckDB sorts NaN above all numbers: ORDER BY
# array_cosine_similarity() DESC begins with it, array_cosine_distance() ends with it. LanceDB leaves it out: of 20 rows a search for 20 has 19.
# Who meets this: whoever ranks pages of scans, tables or another script by SQL: one blank page leads all lists, two fill the first two places.
# Versions: sqlite-vec 0.1.9 with apsw 3.54.1.0, duckdb 2.0.1, lancedb 0.40.0. Source: issue 8 of vlasky/sqlite-vec (mended in that fork),
# pull request 11621 of spiceai/spiceai (the same elsewhere).
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    sqlite-vec==0.1.9 apsw==3.54.1.0 duckdb==2.0.1 lancedb==0.40.0 numpy==2.4.6 2>/dev/null

"$folder/venv/bin/python" - "$folder" <<'PYTHON'
import sys
from importlib.metadata import version

import apsw
import duckdb
import lancedb
import numpy as np
import sqlite_vec

ROWS, WIDTH, EMPTY, BEST = 20, 8, 7, 10
random = np.random.default_rng(0)
vectors = random.normal(size=(ROWS, WIDTH)).astype("float32")
vectors[EMPTY] = 0
query = random.normal(size=WIDTH).astype("float32")
similarity = vectors @ query / np.maximum(np.linalg.norm(vectors, axis=1), 1e-9)
ranking = [int(row) for row in np.argsort(-similarity) if row != EMPTY]

print(*(f"{name} {version(name)}" for name in ("sqlite-vec", "apsw", "duckdb", "lancedb")), sep=", ")


def place(name: str, rows: list[int]) -> int:
    """The rank of the empty page, 0 if it is not returned; all others are in the order of their cosines."""
    others = [row for row in rows if row != EMPTY]
    assert others == ranking[: len(others)], name
    rank = rows.index(EMPTY) + 1 if EMPTY in rows else 0
    print(f"{name}: {len(rows)} rows, the empty page {f'at rank {rank}' if rank else 'is not among them'}")
    return rank


sqlite = apsw.Connection(":memory:")
sqlite.enable_load_extension(True)
sqlite.load_extension(sqlite_vec.loadable_path())
sqlite.execute("create table page(id integer primary key, vector blob)")
sqlite.execute(f"create virtual table vec_page using vec0(vector float[{WIDTH}] distance_metric=cosine)")
for row, vector in enumerate(vectors):
    sqlite.execute("insert into page values(?, ?)", (row, vector.tobytes()))
    sqlite.execute("insert into vec_page(rowid, vector) values(?, ?)", (row, vector.tobytes()))
by_distance = "select id from page order by vec_distance_cosine(vector, ?) limit ?"
by_table = "select rowid from vec_page where vector match ? and k = ?"
scan, table = (sqlite.execute(select, (query.tobytes(), BEST)).fetchall() for select in (by_distance, by_table))

duck = duckdb.connect()
duck.execute(f"create table page(id integer, vector float[{WIDTH}])")
duck.executemany("insert into page values(?, ?)", [(row, vector.tolist()) for row, vector in enumerate(vectors)])
cosine = f"array_cosine_{{}}(vector, ?::float[{WIDTH}])"
similar = duck.execute(f"select id from page order by {cosine.format('similarity')} desc", [query.tolist()]).fetchall()
distant = duck.execute(f"select id from page order by {cosine.format('distance')}", [query.tolist()]).fetchall()

lance = lancedb.connect(f"{sys.argv[1]}/lance").create_table(
    "page", [{"id": row, "vector": vector} for row, vector in enumerate(vectors)]
)
searched = lance.search(query).distance_type("cosine").limit(ROWS).to_list()

assert place("sqlite-vec, order by vec_distance_cosine()", [row for (row,) in scan]) == 1
assert place("sqlite-vec, vec0 table", [row for (row,) in table]) == 0
assert place("DuckDB, order by array_cosine_similarity() desc", [row for (row,) in similar]) == 1
assert place("DuckDB, order by array_cosine_distance()", [row for (row,) in distant]) == ROWS
assert place("LanceDB, search", [hit["id"] for hit in searched]) == 0
PYTHON
