#!/usr/bin/env bash
# ir_measures: RR and RR@10 of one run in one call are 0.5 and 1.0, because one provider ranks by scores of single precision.
#
# Expected: a run maps documents to scores, which Python holds in double precision. The relevant document has the higher score
# and is first. All measures of one call see the same ranking, so RR, RR@10, P@1 and nDCG@1 are 1.
# What happens: pytrec_eval stores scores as C floats. Two scores that differ after the seventh digit become a tie, which is
# broken by the name of the document, descending. P@1 and nDCG@1 are 0 and RR is 0.5; RR@10 comes from another provider,
# which sorts the doubles, and is 1.
# Who meets this: systems whose best cosines are nearly 1 (copies, versions), or whose scores are large integers.
# Versions: ir_measures 0.4.3, pytrec_eval-terrier 0.5.11. Source: issue 34 of usnistgov/trec_eval.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check ir_measures==0.4.3 pytrec_eval-terrier==0.5.11 2>/dev/null

"$folder/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import ir_measures
from ir_measures import RR, P, nDCG

MEASURES = [RR, RR @ 10, P @ 1, nDCG @ 1]


def measured(relevant: float, other: float) -> dict[str, float]:
    run = {"query": {"a-relevant": relevant, "b-other": other}}
    values = ir_measures.calc_aggregate(MEASURES, {"query": {"a-relevant": 1}}, run)
    named = {str(measure): values[measure] for measure in MEASURES}
    print(f"scores {relevant!r} and {other!r}: {named}")
    return named


print(*(f"{name} {version(name)}" for name in ("ir_measures", "pytrec_eval-terrier")), sep=", ")
assert set(measured(2.0, 1.0).values()) == {1.0}
for relevant, other in ((0.99999999, 0.99999998), (20000001.0, 20000000.0)):
    assert measured(relevant, other) == {"RR": 0.5, "RR@10": 1.0, "P@1": 0.0, "nDCG@1": 0.0}
PYTHON
