from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.runs import rank, rank_sections, section_ranking
from benchmarks.systems import DocumentCosine, Evidence
from engine.document import Document
from engine.index import Index
from tests.fakes import FakeEncoder


def test_a_run_holds_every_query_in_order(index: Index, documents: dict[str, Document]) -> None:
    queries = [documents[doc_id] for doc_id in ("rocket", "cat")]
    run, seconds = rank(DocumentCosine(index, "mean"), queries, k=1)
    assert {query_id: ranking[0][0] for query_id, ranking in run.items()} == {"rocket": "dog", "cat": "kitten"}
    assert list(run) == ["rocket", "cat"]
    assert 0 <= seconds < 10


def test_sections_are_ranked_by_what_they_contribute(built_folder: Path, corpus: list[Document]) -> None:
    with Index.open(built_folder, encoder=FakeEncoder()) as index:
        system = Evidence(index, "fake")
        hits = system.hits(corpus[3], k=4)
        run = rank_sections(system, corpus[3:5], k=4)
    summed: dict[str, float] = {}
    for hit in hits:
        for pair in hit.breakdown.pairs:
            name = f"{hit.doc_id}#{pair.target_section}"
            summed[name] = summed.get(name, 0) + sum(part.contribution for part in pair.parts) + pair.words
    assert dict(run["doc003"]) == pytest.approx(summed)
    scores = [score for _, score in run["doc003"]]
    assert scores == sorted(scores, reverse=True)
    assert list(run) == ["doc003", "doc004"]


def test_no_hits_give_no_sections() -> None:
    assert section_ranking([]) == []
