#!/usr/bin/env bash
# Milvus Lite: BM25 scores are negative, so a least score ("radius") that Milvus would apply keeps every document that has the word.
#
# Expected: Milvus Lite is Milvus in a file, with the same client. BM25 is a similarity: "distance" is the score, higher is better and none
# is below zero, as for IP and COSINE. {"radius": 0.7} keeps the documents whose score is above 0.7, as it does for sparse vectors.
# What happens: search() returns the score with its sign turned, best first all the same. "radius" is then compared with negative
# numbers as for a distance that should be small, so 0.7 and 0 keep all. {"radius": 0, "range_filter": 5} keeps none, and
# {"radius": -0.7} keeps the scores above 0.7. hybrid_search() turns the sign back: its WeightedRanker sees positive scores.
# Who meets this: whoever tests against Milvus Lite what then runs on Milvus: thresholds, sorting by score, one's own fusion with dense results.
# Versions: milvus-lite 3.2.2, pymilvus 3.0.2. Source: none found for BM25; issue 343 of milvus-io/milvus-lite is the like for COSINE in 3.0,
# which 3.2.2 has mended.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check milvus-lite==3.2.2 pymilvus==3.0.2 2>/dev/null

"$folder/venv/bin/python" - "$folder/passages.db" <<'PYTHON'
import sys
from importlib.metadata import version

from pymilvus import AnnSearchRequest, DataType, Function, FunctionType, MilvusClient, WeightedRanker

PASSAGES = ["gate", "the gate opens", "a gate of the old canal is shut", "a boat waits", "the lock is full", "water falls"]
client = MilvusClient(sys.argv[1])
schema = client.create_schema()
schema.add_field("id", DataType.INT64, is_primary=True)
schema.add_field("text", DataType.VARCHAR, max_length=100, enable_analyzer=True)
schema.add_field("words", DataType.SPARSE_FLOAT_VECTOR)
schema.add_field("weights", DataType.SPARSE_FLOAT_VECTOR)
schema.add_function(
    Function(name="bm25", input_field_names=["text"], output_field_names=["words"], function_type=FunctionType.BM25)
)
index = client.prepare_index_params()
index.add_index("words", index_type="SPARSE_INVERTED_INDEX", metric_type="BM25")
index.add_index("weights", index_type="SPARSE_INVERTED_INDEX", metric_type="IP")
client.create_collection("passages", schema=schema, index_params=index)
client.insert(
    "passages",
    [{"id": i, "text": text, "weights": {1: 1 / (i + 1), 2: 1.0}} for i, text in enumerate(PASSAGES)],
)


def search(field: str, query: object, **limits: float) -> list[float]:
    hits = client.search("passages", data=[query], anns_field=field, limit=10, search_params={"params": limits})[0]
    print(field, limits, [(hit["id"], round(hit["distance"], 3)) for hit in hits])
    return [hit["distance"] for hit in hits]


print("milvus-lite", version("milvus-lite"), "pymilvus", version("pymilvus"))
inner = search("weights", {1: 1.0})
assert inner == sorted(inner, reverse=True) and min(inner) > 0
assert search("weights", {1: 1.0}, radius=0.3) == [value for value in inner if value > 0.3]

scores = search("words", "gate")
assert len(scores) == 3 and scores == sorted(scores) and max(scores) < 0
assert scores[0] < -0.7 < scores[-1]
assert search("words", "gate", radius=0.7) == search("words", "gate", radius=0.0) == scores
assert search("words", "gate", radius=0.0, range_filter=5.0) == []
assert search("words", "gate", radius=-0.7) == [value for value in scores if value < -0.7]

requests = [
    AnnSearchRequest(["gate"], "words", {"metric_type": "BM25"}, limit=10),
    AnnSearchRequest([{1: 1.0}], "weights", {"metric_type": "IP"}, limit=10),
]
hits = client.hybrid_search("passages", reqs=requests, ranker=WeightedRanker(1.0, 0.0, norm_score=False), limit=3)[0]
fused = [hit["distance"] for hit in hits]
print("hybrid search, BM25 alone:", [round(value, 3) for value in fused])
assert all(abs(value + score) < 1e-4 for value, score in zip(fused, scores))
PYTHON
