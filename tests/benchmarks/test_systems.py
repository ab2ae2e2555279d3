from __future__ import annotations

import pytest

from benchmarks.systems import DocumentCosine, Evidence, Searchable
from engine.document import Document
from engine.scoring.evidence import Scoring


def test_the_document_vector_ranks_by_cosine_and_leaves_the_query_out(index: Searchable) -> None:
    ranking = DocumentCosine(index, "mean").search(Document("cat", "", "", ()), k=2)
    assert [doc_id for doc_id, _ in ranking] == ["kitten", "dog"]
    assert [score for _, score in ranking] == pytest.approx([0.8, 0.6])


def test_a_depth_beyond_the_corpus_gives_every_target(index: Searchable) -> None:
    ranking = DocumentCosine(index, "mean").search(Document("dog", "", "", ()), k=100)
    assert [doc_id for doc_id, _ in ranking] == ["kitten", "rocket", "cat"]


def test_evidence_passes_on_what_the_index_found(index: Searchable) -> None:
    cat = Document("cat", "", "", ())
    assert [doc_id for doc_id, _ in Evidence(index, "mean").search(cat, k=2)] == ["dog", "rocket"]
    assert [doc_id for doc_id, _ in Evidence(index, "mean", exact=True).search(cat, k=1)] == ["kitten"]


def test_evidence_records_the_constants_of_its_score(index: Searchable) -> None:
    settings = Evidence(index, "mean@0", exact=True, scoring=Scoring(crowd=7, power=1.5)).settings
    assert settings.items() >= {"exact": True, "crowd": 7, "power": 1.5}.items()
