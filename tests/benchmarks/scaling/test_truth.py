from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.scaling.truth import ExactLists
from engine.index import Index
from engine.scoring.evidence import Scoring
from engine.search import Searcher

NAMES = ("d3", "d120", "d239")


@pytest.mark.parametrize("scoring", [Scoring(), Scoring(crowd=5, document_weight=0.0)], ids=["usual", "other"])
@pytest.mark.parametrize("step", [240, 70], ids=["one block", "blocks"])
def test_rankings_are_those_of_the_exact_search(real_folder: Path, step: int, scoring: Scoring) -> None:
    with Index.open(real_folder) as index:
        queries = [index.stored_query(name) for name in NAMES]
        own = np.array([index.snapshot.position(name) for name in NAMES])
        lists = ExactLists([query.vectors for query in queries], own, 20, 30)
        for first in range(0, 240, step):
            block = np.arange(first, min(first + step, 240))
            lists.add(index.snapshot.document_vectors[block], *index.snapshot.chunk_vectors(block))
        searcher = Searcher(index.snapshot, scoring)
        together = searcher.exact_top_positions(list(zip(NAMES, queries, strict=True)), k=10)
        for name, query, ranking, best in zip(NAMES, queries, lists.rankings(scoring), together, strict=True):
            hits = searcher.search(query, k=10, without=name, exact=True).hits
            assert [f"d{number}" for number in ranking[:10]] == [hit.doc_id for hit in hits]
            assert ranking[:10].tolist() == best.tolist()


def test_a_query_of_another_collection_leaves_nothing_out(real_folder: Path) -> None:
    with Index.open(real_folder) as index:
        lists = ExactLists([index.stored_query("d3").vectors], np.array([-1]), 20, 30)
        everything = np.arange(240)
        lists.add(index.snapshot.document_vectors, *index.snapshot.chunk_vectors(everything))
    assert (lists.n_documents, lists.rankings(Scoring())[0][0]) == (240, 3)
