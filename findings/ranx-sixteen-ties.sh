#!/usr/bin/env bash
# ranx orders tied documents as they were given up to 15 of them, and nearly backwards from 16 on.
#
# Expected: documents of one score keep the order of the run, or are ordered by their names as trec_eval does. Either way a
# measure does not depend on how many other documents share the score.
# What happens: Run sorts with an unstable method. With 15 tied documents the first one given has rank 1; with 16 it has rank
# 15, so its reciprocal rank falls from 1 to 0.067. A constant scorer looks perfect in one pool and useless in the next.
# Who meets this: rerankers that cut at a depth, scores of few levels, keyword counts.
# Versions: ranx 0.3.21, numba 0.68.1. Source: ranx/data_structures/common.py (argsort compiled by numba, not a stable sort).
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check ranx==0.3.21 numba==0.68.1 2>/dev/null

"$folder/venv/bin/python" - <<'PYTHON'
import warnings
from importlib.metadata import version

warnings.filterwarnings("ignore")
from ranx import Qrels, Run, evaluate


def rank_of_first(documents: int) -> int:
    names = [f"d{number:02}" for number in range(documents)]
    run = Run({"query": dict.fromkeys(names, 1.0)})
    return round(1 / evaluate(Qrels({"query": {names[0]: 1}}), run, "mrr"))


print(*(f"{name} {version(name)}" for name in ("ranx", "numba")), sep=", ")
ranks = {documents: rank_of_first(documents) for documents in (2, 5, 10, 15, 16, 17, 20)}
for documents, rank in ranks.items():
    print(f"{documents} documents of one score: the first one given has rank {rank}")
assert all(ranks[documents] == 1 for documents in (2, 5, 10, 15))
assert ranks[16] == 15 and ranks[20] == 19
PYTHON
