"""The validation of training is compared with an index, search and ir_measures; nDCG by itself."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.encoders.encoder import EncodedDocument, SegmentedDocument
from engine.encoders.trainable import MeanEncoder
from engine.errors import TrainingError
from engine.index import Index
from engine.scoring.evidence import Scoring
from engine.search.query import as_stored
from engine.search.request import Request
from engine.training.corpus import TrainingCorpus
from engine.training.trainer import Validation, ndcg
from indexer.building.builder import build
from tests.fakes import make_corpus, make_document
from tests.training.made import pairs_of_texts, plain_encoder, training_corpus

DOCUMENTS = pairs_of_texts(25, n_words=60)
CHUNKS = Scoring(word_weight=0, pair_weight=0)
IDS = [document.doc_id for document in DOCUMENTS]


class Stored(MeanEncoder):
    """Rounds vectors as an index does, so that near ties are ranked in the same way."""

    def encode_segmented(self, documents: Sequence[SegmentedDocument]) -> list[EncodedDocument]:
        return [as_stored(encoded) for encoded in super().encode_segmented(documents)]


@pytest.fixture(scope="module")
def encoder(mean_encoder: MeanEncoder) -> Stored:
    return Stored(mean_encoder.backbone, window_tokens=12)


@pytest.fixture(scope="module")
def corpus() -> TrainingCorpus:
    """Graded judgments of the other half of a pair and of some other documents, one of which is in no corpus."""
    rng = np.random.default_rng(1)
    valid = {
        f"q{number}": {
            f"t{number}": 2,
            **{one: int(rng.integers(0, 4)) for one in rng.choice(IDS, 4).tolist() if one != f"q{number}"},
            "gone": 1,
        }
        for number in range(0, 20, 2)
    }
    return training_corpus(DOCUMENTS, {}, valid=valid)


@pytest.mark.slow
@pytest.mark.parametrize("scoring", [CHUNKS, replace(CHUNKS, exceeding=5, power=1.0)])
def test_validation_equals_the_ndcg_of_exact_search_by_chunks(
    tmp_path: Path, encoder: Stored, corpus: TrainingCorpus, scoring: Scoring
) -> None:
    pytest.importorskip("ir_measures")
    from benchmarks.metrics import PRIMARY, evaluate

    build(tmp_path / "x.lm", DOCUMENTS, encoder=encoder)
    with Index.open(tmp_path / "x.lm", encoder=encoder) as index:
        rankings = {
            query_id: [hit.doc_id for hit in index.search(query_id, Request(k=10, exact=True, scoring=scoring)).hits]
            for query_id in corpus.valid
        }
    expected = evaluate(corpus.valid, rankings)[PRIMARY]
    validation = Validation(corpus, encoder, scoring=scoring)
    found = validation.by_query()
    assert len(set(expected.values())) > 3
    differences = sorted(abs(found[query_id] - expected[query_id]) for query_id in expected)
    # An index rounds its reference to bytes, which moves scores by 0.0002: it may swap two documents of one query.
    assert differences[-2] < 1e-6 and differences[-1] < 0.1
    assert validation.ndcg() == pytest.approx(np.mean(list(found.values())), abs=1e-6)


def test_documents_are_cut_to_chunks_spread_over_them(encoder: Stored, corpus: TrainingCorpus) -> None:
    cut = [encoder.segment(one) for one in DOCUMENTS]
    kept = [[one.chunks[0], one.chunks[-1]] for one in cut]
    assert min(len(one.chunks) for one in cut) > 2
    validation = Validation(corpus, encoder, chunks=2)
    assert validation.n_tokens == sum(chunk.n_tokens for chunks in kept for chunk in chunks)
    assert Validation(corpus, encoder).n_tokens == sum(one.coverage.tokens_read for one in cut)


def test_only_the_first_queries_are_searched(encoder: Stored, corpus: TrainingCorpus) -> None:
    first = Validation(corpus, encoder, queries=3).by_query()
    assert list(first) == ["q0", "q2", "q4"]
    whole = Validation(corpus, encoder).by_query()
    assert first == {query_id: whole[query_id] for query_id in first}


def test_all_judged_documents_are_ranked_whatever_the_number_and_the_same_others_each_time(
    encoder: Stored, corpus: TrainingCorpus
) -> None:
    class Recording(Stored):
        def encode_segmented(self, documents: Sequence[SegmentedDocument]) -> list[EncodedDocument]:
            ranked.append([one.document.doc_id for one in documents])
            return super().encode_segmented(documents)

    ranked: list[list[str]] = []
    recording = Recording(encoder.backbone, window_tokens=12)
    for most in (1, 30, 30, 49, 50, 51):
        Validation(corpus, recording, queries=4, documents=most).by_query()
    judged = {one for query, targets in list(corpus.valid.items())[:4] for one in (query, *targets)} - {"gone"}
    assert set(ranked[0]) == judged and len(judged) < 25
    assert [len(own) for own in ranked] == [len(judged), 29, 29, 48, 50, 50]  # "gone" takes a place
    assert ranked[1] == ranked[2] and judged < set(ranked[1]) and ranked[4] == ranked[5] == IDS
    assert all(own == [one for one in IDS if one in own] for own in ranked)


def test_a_query_without_a_token_finds_nothing_and_others_rank_without_it(encoder: Stored) -> None:
    documents = [*DOCUMENTS[:4], make_document("void", "  ")]
    valid = {"void": {"q0": 1}, "q0": {"t0": 1, "void": 1}}
    found = Validation(training_corpus(documents, {}, valid=valid), encoder).by_query()
    assert found["void"] == 0.0
    assert 0 < found["q0"] < 1


def test_validation_follows_changes_of_the_parameters(bert_folder: Path, corpus: TrainingCorpus) -> None:
    encoder = plain_encoder(bert_folder)
    validation = Validation(corpus, encoder)
    before = validation.by_query()
    assert validation.by_query() == before
    with torch.no_grad():
        for weight in encoder.module.parameters():
            weight.normal_(generator=torch.Generator().manual_seed(0))
    assert validation.by_query() != before


def test_a_corpus_without_valid_queries_is_refused(encoder: Stored) -> None:
    with pytest.raises(TrainingError) as raised:
        Validation(training_corpus(make_corpus(3), {}), encoder)
    assert str(raised.value) == (
        "corpus made has no valid queries; give it splits.json and qrels.tsv, or train without"
    )


@given(
    st.lists(st.sampled_from("abcdefghijklmnop"), unique=True, max_size=16),
    st.dictionaries(st.sampled_from("abcdefghijklmnop"), st.integers(0, 4), min_size=1),
)
def test_ndcg_is_that_of_ir_measures(ranking: list[str], judged: dict[str, int]) -> None:
    pytest.importorskip("ir_measures")
    from benchmarks.metrics import PRIMARY, evaluate

    expected = evaluate({"q": judged}, {"q": ranking} if ranking else {})[PRIMARY]["q"]
    assert ndcg(ranking, judged, 10) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("ranking", "judged", "expected"),
    [
        (["a", "b"], {"a": 1, "b": 1}, 1.0),
        (["b", "a"], {"a": 2, "b": 1}, (1 + 3 / np.log2(3)) / (3 + 1 / np.log2(3))),
        (["x", "a"], {"a": 1}, 1 / np.log2(3)),
        (["x", "y", "a"], {"a": 1}, 0.0),  # below the depth of 2
        (["a"], {"a": 0, "b": -1}, 0.0),
        (["b", "a"], {"a": 1, "b": -2}, 1 / np.log2(3)),
    ],
)
def test_ndcg_of_small_rankings_by_hand(ranking: list[str], judged: dict[str, int], expected: float) -> None:
    assert ndcg(ranking, judged, 2) == pytest.approx(expected)
