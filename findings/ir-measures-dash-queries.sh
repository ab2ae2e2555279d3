#!/usr/bin/env bash
# ir_measures: ERR@10 of queries named "US-1" and "EP-2" is half of that of the same queries named "1" and "2"; nDCG@10 is not.
#
# Expected: ids of queries are opaque strings. Every measure of one call sees the same queries, and another spelling of the ids
# changes no value.
# What happens: ERR, and nDCG with exponential gains, come from a script of TREC that cuts off all up to the last dash of a topic
# ("wt09-1" is topic 1). Its values come back under "1" and "2", ir_measures adds zeros for "US-1" and "EP-2", which it
# misses, and the mean is taken over all four. Ids whose ends are equal ("en-1", "fr-1") also become one query.
# Who meets this: whoever evaluates by patent numbers, UUIDs or ids with a language in front. Ids that begin with a letter and
# have no dash do raise an error there, so that the dash looks like the remedy.
# Versions: ir_measures 0.4.3. Source: ir_measures/bin/gdeval.pl, and _iter_calc of ir_measures/providers/base.py.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check ir_measures==0.4.3 pytrec_eval-terrier==0.5.11 2>/dev/null

"$folder/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import ir_measures
from ir_measures import ERR, nDCG

EXPONENTIAL = nDCG(dcg="exp-log2") @ 10
MEASURES = [nDCG @ 10, ERR @ 10, EXPONENTIAL]


def measured(first: str, second: str) -> tuple[list[float], list[str]]:
    """Means of both queries, each with its only relevant document first, and the ids that ERR is reported for."""
    qrels = {query: {f"paper {query}".replace(" ", ""): 1} for query in (first, second)}
    run = {query: {document: 1.0 for document in documents} for query, documents in qrels.items()}
    values = ir_measures.calc_aggregate(MEASURES, qrels, run)
    ids = [metric.query_id for metric in ir_measures.iter_calc([ERR @ 10], qrels, run)]
    print(f"{first} and {second}:", {str(measure): values[measure] for measure in MEASURES}, "ERR for", sorted(ids))
    return [values[measure] for measure in MEASURES], sorted(ids)


print("ir_measures", version("ir_measures"))
assert measured("1", "2") == ([1.0, 0.0625, 1.0], ["1", "2"])
assert measured("US-1", "EP-2") == ([1.0, 0.03125, 0.5], ["1", "2", "EP-2", "US-1"])
values, ids = measured("en-1", "fr-1")
assert ids == ["1", "en-1", "fr-1"] and values[0] == 1.0 and values[2] < 0.5
PYTHON
