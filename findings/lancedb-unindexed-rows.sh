#!/usr/bin/env bash
# LanceDB: a document that was added after the full-text index stands behind all older ones, though it has the word three times and they once.
#
# Expected: rows that an index does not cover yet are searched too, by a scan, so that results are complete and only slower. A score of BM25
# depends on the document and the collection; where the row lies changes nothing, or all rows change alike.
# What happens: rows of the index are scored by the statistics of the index alone, the new ones by others that count both. Where the word is
# in all rows, its weight falls with their number, so new rows get about half: the twins of old rows, letter for letter, have half their score
# and come behind the worst of them. After optimize() twins are equal and the better document is first. Nothing in the answer shows which
# rows were scored how.
# Who meets this: whoever adds documents every day and optimizes at night: the day's documents are never on top, and scores of old ones change
# when it runs, so that a threshold or a fusion of scores with vectors gives other results.
# Versions: lancedb 0.40.0. Source: issue 9058 of lance-format/lance (open); pull request 3036, which made the scan, has its formula.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check lancedb==0.40.0 2>/dev/null

"$folder/venv/bin/python" - "$folder" <<'PYTHON'
import sys
from importlib.metadata import version

import lancedb

PARAGRAPHS = [f"river law court {'bridge ' * (number % 3)}" for number in range(10)]
BETTER = "river river river law court"


def rows(texts: list[str], first: int) -> list[dict]:
    return [{"id": first + place, "text": text, "vector": [0.0, 1.0]} for place, text in enumerate(texts)]


def search(title: str) -> list[tuple[int, float]]:
    hits = table.search("river", query_type="fts").limit(100).to_list()
    print(f"{title}: the first is {hits[0]['text'].strip()!r}; the better one has rank", end=" ")
    ranking = [(hit["id"], round(hit["_score"], 4)) for hit in hits]
    print(next((rank for rank, (row, _) in enumerate(ranking, 1) if row == 20), None))
    return ranking


print("lancedb", version("lancedb"))
table = lancedb.connect(sys.argv[1]).create_table("page", rows(PARAGRAPHS, 0))
table.create_fts_index("text")
assert len(search("ten rows, all indexed")) == 10

table.add(rows([*PARAGRAPHS, BETTER], 10))
before = search("eleven added, ten of them copies of the old ones")
scores = dict(before)
assert len(before) == 21 and {row for row, _ in before[:10]} == set(range(10))
assert all(scores[row + 10] < 0.6 * scores[row] for row in range(10))
assert min(scores[row] for row in range(10)) > scores[20]

table.optimize()
after = search("optimized")
assert after[0][0] == 20
scores = dict(after)
assert all(scores[row + 10] == scores[row] for row in range(10))
PYTHON
