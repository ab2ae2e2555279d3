from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.systems import DocumentCosine, Evidence, training_pairs
from engine.index import Index
from engine.text.document import Document
from tests.fakes import FakeEncoder


@pytest.fixture
def built(built_folder: Path) -> Iterator[Index]:
    with Index.open(built_folder, encoder=FakeEncoder()) as opened:
        yield opened


def test_document_vectors_rank_by_cosine_without_the_query(index: Index, documents: dict[str, Document]) -> None:
    ranking = DocumentCosine(index, "mean").search(documents["cat"], k=2)
    assert [doc_id for doc_id, _ in ranking] == ["kitten", "dog"]
    assert [score for _, score in ranking] == pytest.approx([0.8, 0.6])


def test_parts_of_the_score_are_systems_of_their_own(built: Index, corpus: list[Document]) -> None:
    for name, parts in (("words", {"words", "pairs"}), ("chunks", {"chunks"})):
        system = Evidence(built, "fake@0", name=name)
        assert (system.name, system.encoder) == (name, "fake@0" if name == "chunks" else "")
        for hit in system.hits(corpus[7], k=5):
            assert {kind for kind, added in hit.breakdown.components.items() if added} <= parts


@pytest.mark.parametrize("system", [DocumentCosine, Evidence])
def test_only_a_query_outside_the_corpus_is_encoded(
    built: Index, corpus: list[Document], system: type[DocumentCosine | Evidence]
) -> None:
    ranker = system(built, "fake")
    (first, score), *others = ranker.search(corpus[7], k=5)
    assert first != "doc007" and score > others[0][1]
    assert built.encoder.batches == []
    (first, _), *_ = ranker.search(replace(corpus[7], doc_id="draft"), k=3)
    assert (first, len(built.encoder.batches)) == ("doc007", 1)
    # A query that only shares an id with a document is searched by its own text.
    found = [doc_id for doc_id, _ in ranker.search(replace(corpus[7], doc_id="doc008"), k=59)]
    assert found[0] == "doc007" and "doc008" not in found


def test_an_encoded_query_scores_as_its_stored_copy(built: Index, corpus: list[Document]) -> None:
    system = DocumentCosine(built, "fake")
    stored, encoded = (dict(system.search(query, k=60)) for query in (corpus[7], replace(corpus[7], doc_id="draft")))
    np.testing.assert_allclose([stored[doc_id] for doc_id in stored], [encoded[doc_id] for doc_id in stored], atol=1e-6)


def test_the_bundled_encoder_learned_from_four_corpora() -> None:
    assert training_pairs("longmatch-minilm") == {
        "rfc": 20613,
        "wikipedia_seealso": 3622,
        "clscisumm": 1950,
        "proposals": 3139,
    }


def test_a_folder_without_our_model_card_has_no_training_pairs(tmp_path: Path) -> None:
    assert training_pairs(str(tmp_path)) == {}
    (tmp_path / "README.md").write_text("# A model\n\n| corpus | documents | pairs |\n| a | 1 | 2 |\n")
    assert training_pairs(str(tmp_path)) == {}
