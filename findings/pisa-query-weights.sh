#!/usr/bin/env bash
# PISA for Python (pyterrier_pisa): weights that are passed for the terms of a query change nothing in bm25(), dph(), pl2() and qld().
#
# Expected: a query as {"falcon": 9.0, "harbour": 1.0} in the column query_toks ranks what falcon finds first, and a text that
# says falcon nine times does too: that column exists to pass weights, and BM25 counts repeated terms.
# What happens: query_weighted is None by default, which means True for quantized() alone. In the others each distinct term
# counts once, without a word: a whole document as the query loses all its term frequencies, and weights from an expansion
# (RM3, Bo1) are dropped. With query_weighted=True both count; query_toks are then multiplied by toks_scale, 100.
# Who meets this: whoever compares with PISA by long queries, or places it behind a query expansion.
# Versions: pyterrier_pisa 0.4.9, python-terrier 1.0. Source: https://github.com/pisa-engine/pisa/pull/467 (the flag below it)
# and https://github.com/pisa-engine/pisa/issues/501; the default seen by running this.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pyterrier_pisa==0.4.9 python-terrier==1.0 2>/dev/null

FOLDER=$folder "$folder/venv/bin/python" - 2>&1 <<'PYTHON' | grep --line-buffered -v -e '\[info\]' -e '%' -e 'simdbp$'
import os
from importlib.metadata import version

import pandas as pd
from pyterrier_pisa import PisaIndex

texts = {
    "bird": "a falcon circles above some grey cliffs at noon",
    "port": "harbour walls keep boats safe from winter storms here tonight",
    **{f"other-{number}": f"bread and butter for table {number}" for number in range(8)},
}
index = PisaIndex(os.environ["FOLDER"] + "/index", text_field="text", stemmer="none")
index.index({"docno": name, "text": text} for name, text in texts.items())


def ratio(query: dict[str, object], weighted: bool | None) -> float:
    """The score of the bird as a multiple of that of the port."""
    found = index.bm25(num_results=5, threads=1, query_weighted=weighted)(pd.DataFrame([{"qid": "1", **query}]))
    scores = dict(zip(found["docno"], found["score"], strict=True))
    return round(scores["bird"] / scores["port"], 2)


once = ratio({"query": "falcon harbour"}, None)
nine = {"query": "falcon " * 9 + "harbour"}
weights = {"query_toks": {"falcon": 9.0, "harbour": 1.0}}
print("pyterrier_pisa", version("pyterrier_pisa"), "and PyTerrier", version("python-terrier"))
print("bird / port, each word once:", once)
for name, query in (("nine times", nine), ("weight 9", weights)):
    found = {weighted: ratio(query, weighted) for weighted in (None, True)}
    print(f"bird / port, {name}: {found[None]} by default, {found[True]} with query_weighted=True")
    assert found[None] == once
    assert abs(found[True] / once - 9) < 0.05
PYTHON
