#!/usr/bin/env bash
# ranx: fused with norm="max", a reranker whose scores are all below zero puts its own documents behind all that it left out.
#
# Expected: norm="max" divides the scores of a query by the highest one. With negative scores that turns the order around, as -1 / -1
# is less than -3 / -1, or is refused; in either case the values are small numbers.
# What happens: the divisor is the highest score, but at least 1e-9. Scores of -1 and -3 become -1e9 and -3e9 and decide the sum alone.
# The order inside of the list is right, but a document that the list lacks counts 0 and comes before all that it has. A query
# with one positive score among them is fused as usual, so it happens query by query.
# Who meets this: whoever fuses a keyword search with logits of a cross-encoder, log-likelihoods or negated distances.
# Versions: ranx 0.3.21, numba 0.68.1. Source: ranx/normalization/max_norm.py.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check ranx==0.3.21 numba==0.68.1 2>/dev/null

"$folder/venv/bin/python" - <<'PYTHON'
import warnings
from importlib.metadata import version

warnings.filterwarnings("ignore")
from ranx import Run, fuse

KEYWORDS = {"both first": 12.0, "both second": 9.0, "keywords only": 3.0}


def fused(norm: str, *logits: float) -> dict[str, float]:
    reranked = dict(zip(("both first", "both second"), logits))
    runs = [Run({"query": scores}) for scores in (KEYWORDS, reranked)]
    scores = dict(fuse(runs, norm=norm, method="sum")["query"])
    ranking = {name: round(float(scores[name]), 2) for name in sorted(scores, key=scores.get, reverse=True)}
    print(f"{norm}, logits {logits}: {ranking}")
    return ranking


print(*(f"{name} {version(name)}" for name in ("ranx", "numba")), sep=", ")
for logits in ((3.0, 1.0), (1.0, -3.0)):
    ranking = fused("max", *logits)
    assert next(iter(ranking)) == "both first" and min(ranking.values()) > -3
ranking = fused("max", -1.0, -3.0)
assert next(iter(ranking)) == "keywords only" and min(ranking.values()) < ranking["both first"] < -9e8
for norm in ("min-max", "rank"):
    assert next(iter(fused(norm, -1.0, -3.0))) == "both first"
PYTHON
