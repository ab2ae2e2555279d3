#!/usr/bin/env bash
# Haystack: in distribution-based fusion a list of one hit keeps its BM25 score of 5 among values from 0 to 1, and is first whatever it is.
#
# Expected: each list is brought to a common scale by its mean and its spread before the lists are joined; a list without spread, of one hit or
# of equal scores, has no position on that scale and gets one value of it, the middle or 0.
# What happens: for such a list the scores of the retriever are left as they are, and compared with the scaled ones of the other list. A BM25
# score of 5 or an inner product of 30 goes before the best hit of the other retriever, a logit of -2 behind all that it has.
# It depends on the query: with two keyword hits of unequal scores the same document is scaled. Releases before set them to 0.
# Who meets this: whoever joins keywords and vectors: rare words, names and identifiers are just the queries with one keyword hit.
# Versions: haystack-ai 3.4.1. Source: DocumentJoiner in haystack/components/joiners/document_joiner.py; issue 12507 of deepset-ai/haystack,
# whose mend brought it.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check haystack-ai==3.4.1 2>/dev/null

HAYSTACK_TELEMETRY_ENABLED=False "$folder/venv/bin/python" - 2>/dev/null <<'PYTHON'
from importlib.metadata import version

from haystack import Document
from haystack.components.joiners import DocumentJoiner

VECTORS = {"ferry": 0.81, "river": 0.78, "bridge": 0.52, "tower": 0.41}


def fuse(**keywords: float) -> list[tuple[str, float]]:
    """The ranking of vectors and keywords joined."""
    lists = [[Document(id=name, content=name, score=score) for name, score in hits.items()] for hits in (VECTORS, keywords)]
    joined = DocumentJoiner(join_mode="distribution_based_rank_fusion").run(lists)["documents"]
    ranking = [(document.id, round(document.score, 3)) for document in joined]
    print(f"keywords {keywords}: {ranking}")
    return ranking


print("haystack-ai", version("haystack-ai"))
assert all(0 < score < 1 for _, score in fuse(court=5.0, law=4.9))
assert fuse(court=5.0)[0] == ("court", 5.0)
assert fuse(court=5.0, law=5.0)[:2] in ([("court", 5.0), ("law", 5.0)], [("law", 5.0), ("court", 5.0)])
assert fuse(court=-2.0)[-1] == ("court", -2.0)
PYTHON
