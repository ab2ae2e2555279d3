#!/usr/bin/env bash
# trectools: under pandas 3 the R-precision of a run is 0.617 and under pandas 2 it is 0.25, with the same trectools and files.
#
# Expected: R-precision is a share, at most 1 for each query. A library that a new pandas breaks raises an error; where it runs, its
# values are those of trec_eval, as they still are for MAP and nDCG of the same run.
# What happens: pandas 3 leaves the column that was grouped by out of what DataFrameGroupBy.apply() passes on. get_rprec() then joins
# results and judgments by the document alone, so a document counts for a query if it is relevant to any query. Values rise, to 1.67
# for one query here. Without documents that two queries share nothing changes. pandas 2 warned of it; pandas 3 and trectools are silent.
# Who meets this: whoever judges many queries over one small collection. trectools does not limit pandas, so a new environment has 3.
# Versions: trectools 0.0.50, pandas 2.3.3 and 3.1.1, pytrec_eval-terrier 0.5.11. Source: get_rprec of trectools/trec_eval.py, and
# include_groups in the documentation of DataFrameGroupBy.apply.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat >"$folder/measures.py" <<'PYTHON'
import json
import random
import warnings
from importlib.metadata import version
from pathlib import Path
from statistics import mean

warnings.filterwarnings("ignore")
import pytrec_eval
from trectools import TrecEval, TrecQrel, TrecRun

folder = Path(__file__).parent
draw = random.Random(0)
documents = [f"d{number}" for number in range(100)]
qrels = {f"q{number}": dict.fromkeys(draw.sample(documents, 3), 1) for number in range(20)}
run = {query: {name: draw.random() + (0.3 if name in known else 0) for name in documents} for query, known in qrels.items()}
qrel_lines = [f"{query} 0 {name} 1\n" for query, known in qrels.items() for name in known]
run_lines = [
    f"{query} Q0 {name} {rank} {scores[name]} run\n"
    for query, scores in run.items()
    for rank, name in enumerate(sorted(scores, key=scores.get, reverse=True), 1)
]
(folder / "qrels").write_text("".join(qrel_lines))
(folder / "run").write_text("".join(run_lines))

evaluation = TrecEval(TrecRun(str(folder / "run")), TrecQrel(str(folder / "qrels")))
values = pytrec_eval.RelevanceEvaluator(qrels, {"map", "Rprec", "ndcg"}).evaluate(run).values()
ours = {"map": evaluation.get_map(), "ndcg": evaluation.get_ndcg(), "Rprec": evaluation.get_rprec()}
official = {name: mean(value[name] for value in values) for name in ours}
result = {
    "pandas": version("pandas"),
    "trectools": {name: round(float(value), 4) for name, value in ours.items()},
    "trec_eval": {name: round(value, 4) for name, value in official.items()},
    "highest Rprec of a query": round(float(evaluation.get_rprec(per_query=True).max().iloc[0]), 2),
}
print(json.dumps(result))
PYTHON

for version in 2.3.3 3.1.1; do
    python3 -m venv "$folder/venv$version"
    "$folder/venv$version/bin/pip" install --quiet --disable-pip-version-check trectools==0.0.50 "pandas==$version" \
        numpy==2.4.6 pytrec_eval-terrier==0.5.11 2>/dev/null
    "$folder/venv$version/bin/python" "$folder/measures.py" | tee -a "$folder/results"
done

python3 - "$folder/results" <<'PYTHON'
import json
import sys
from pathlib import Path

two, three = map(json.loads, Path(sys.argv[1]).read_text().splitlines())
assert two["trectools"] == two["trec_eval"] == three["trec_eval"]
assert all(three["trectools"][name] == three["trec_eval"][name] for name in ("map", "ndcg"))
assert three["trectools"]["Rprec"] > 2 * three["trec_eval"]["Rprec"]
assert two["highest Rprec of a query"] < 1 < three["highest Rprec of a query"]
PYTHON
