"""Selection of chunks, and hard negatives."""

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.encoders.encoder import SegmentedDocument
from engine.errors import MissingExtra, QueryError, TrainingError
from engine.index import Index
from engine.search.request import Request
from engine.text.document import Document
from engine.training.corpus import Judgments, TrainingCorpus
from engine.training.selection import (
    EvidenceChunks,
    Miner,
    PairBatch,
    RandomRuns,
    Selector,
    hard_negatives,
    index_miner,
    keep_chunks,
    lexical_miner,
    spread_chunks,
)
from indexer.building.builder import build
from tests.fakes import WINDOW_WORDS, FakeEncoder, make_corpus, make_document
from tests.training.made import training_corpus

ENCODER = FakeEncoder()


def document(doc_id: str, words: str) -> Document:
    """A document with a chunk for each word; the vector of a chunk is that of its word."""
    return make_document(doc_id, " ".join(" ".join([word] * WINDOW_WORDS) for word in words.split()))


DOCUMENTS = [
    document("query", "licence one match two near three four five"),
    document("positive", "six seven licence match eight near nine"),
    document("hard", "licence ten near"),
    *(document(f"other{number}", f"licence a{number} b{number} c{number} d{number} e{number}") for number in range(6)),
]


def segmented(doc_id: str) -> SegmentedDocument:
    return ENCODER.segment(next(one for one in DOCUMENTS if one.doc_id == doc_id))


def batch(*, excluded: Sequence[int] = ()) -> PairBatch:
    """A batch of one query; its positive is the first target."""
    targets = [segmented(one.doc_id) for one in DOCUMENTS[1:]]
    positives, left_out = np.zeros((1, len(targets)), np.bool_), np.zeros((1, len(targets)), np.bool_)
    positives[0, 0], left_out[0, list(excluded)] = True, True
    return PairBatch([segmented("query")], targets, positives, left_out)


@pytest.fixture(scope="module")
def chunk_index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    folder = tmp_path_factory.mktemp("selection") / "x.lm"
    build(folder, DOCUMENTS, encoder=FakeEncoder())
    with Index.open(folder, encoder=FakeEncoder()) as index:
        yield index


def kept_words(one: SegmentedDocument) -> list[str]:
    return [one.document.text[chunk.start : chunk.stop].split()[0] for chunk in one.chunks]


def test_kept_chunks_are_in_reading_order_each_once_and_coverage_counts_them() -> None:
    kept = keep_chunks(segmented("query"), [5, 2, 5])
    assert kept_words(kept) == ["match", "three"]
    assert kept.token_ids == (segmented("query").token_ids[2], segmented("query").token_ids[5])
    assert (kept.coverage.tokens_read, kept.coverage.tokens_total) == (2 * WINDOW_WORDS, 8 * WINDOW_WORDS)
    assert kept.document == segmented("query").document


@given(st.integers(1, 40), st.integers(1, 45))
def test_spread_chunks_are_as_far_apart_as_can_be(n: int, most: int) -> None:
    whole = ENCODER.segment(document("a", " ".join(f"w{number}" for number in range(n))))
    kept = [int(word[1:]) for word in kept_words(spread_chunks(whole, most))]
    gaps = [second - first for first, second in pairwise(kept)]
    assert len(kept) == min(n, most)
    assert kept[0] == 0 and (most == 1 or kept[-1] == n - 1)
    assert max(gaps, default=1) - min(gaps, default=1) <= 1


def test_random_runs_are_neighbours_and_start_anywhere() -> None:
    words = kept_words(segmented("query"))
    found = Counter()
    for seed in range(200):
        chosen = RandomRuns(3, 99)(batch(), np.random.default_rng(seed))
        found[tuple(kept_words(chosen.queries[0]))] += 1
        assert chosen.targets == batch().targets
    assert found.keys() == {tuple(words[first : first + 3]) for first in range(6)}
    assert min(found.values()) > 15


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("most", [1, 2, 4, 50])
@pytest.mark.parametrize("chooses", ["random", "evidence"])
def test_selected_chunks_are_chunks_of_the_document_within_the_limit_and_in_order(
    chunk_index: Index, chooses: str, most: int, seed: int
) -> None:
    selector: Selector = RandomRuns(most, most)
    if chooses == "evidence":
        selector = EvidenceChunks(chunk_index, most, most, threshold_rank=3)
    whole = batch(excluded=[4])
    chosen = selector(whole, np.random.default_rng(seed))
    for before, after in zip((*whole.queries, *whole.targets), (*chosen.queries, *chosen.targets), strict=True):
        assert 1 <= len(after.chunks) <= most
        assert list(after.chunks) == sorted(after.chunks, key=lambda chunk: chunk.start)
        by_chunk = dict(zip(before.chunks, before.token_ids, strict=True))
        assert after.token_ids == tuple(by_chunk[chunk] for chunk in after.chunks)
    assert np.array_equal(chosen.positives, whole.positives) and np.array_equal(chosen.excluded, whole.excluded)


def drawn_shares(excluded: Sequence[int]) -> list[float]:
    """The weights of the class's docstring, one chunk and one target at a time, as shares of their sum."""
    whole = batch(excluded=excluded)
    encoded = ENCODER.encode_segmented([*whole.queries, *whole.targets])
    weights = []
    for chunk in encoded[0].chunks:
        best = [max(float(chunk @ other) for other in target.chunks) for target in encoded[1:]]
        others = sorted((best[at] for at in range(1, len(best)) if at not in excluded), reverse=True)
        theta = min(1.0, max(0.0, others[3]))
        evidence = [0.0 if at in excluded else max(0.0, value - theta) ** 2 for at, value in enumerate(best)]
        weights.append(evidence[0] + max(evidence) / 2 + EvidenceChunks.FLOOR)
    return [weight / sum(weights) for weight in weights]


@pytest.mark.slow
@pytest.mark.parametrize("excluded", [[], [1]], ids=["all", "hard-excluded"])
def test_query_chunks_are_drawn_by_their_evidence(chunk_index: Index, excluded: list[int]) -> None:
    selector = EvidenceChunks(chunk_index, 1, 4, threshold_rank=3)
    rng, whole = np.random.default_rng(0), batch(excluded=excluded)
    found = Counter(kept_words(selector(whole, rng).queries[0])[0] for _ in range(600))
    shares = [found[word] / 600 for word in kept_words(segmented("query"))]
    np.testing.assert_allclose(shares, drawn_shares(excluded), atol=0.06)


def test_chunks_that_match_the_positive_alone_are_preferred_to_those_that_match_all_targets(chunk_index: Index) -> None:
    selector = EvidenceChunks(chunk_index, 2, 2, threshold_rank=3)
    words = [kept_words(selector(batch(), np.random.default_rng(seed)).queries[0]) for seed in range(50)]
    assert sum("licence" in one for one in words) == 0
    assert sum("match" in one for one in words) >= 45


def test_positives_keep_best_matches_and_targets_without_evidence_half_as_many(chunk_index: Index) -> None:
    chosen = EvidenceChunks(chunk_index, 99, 6, threshold_rank=3)(batch(), np.random.default_rng(0))
    query, positive = ENCODER.encode_segmented([segmented("query"), segmented("positive")])
    best = {int(np.argmax([float(chunk @ other) for other in positive.chunks])) for chunk in query.chunks}
    words = kept_words(segmented("positive"))
    assert kept_words(chosen.targets[0]) == [words[at] for at in sorted(best)]
    assert "near" in kept_words(chosen.targets[1])  # of the hard negative only chunks above the threshold
    selector = EvidenceChunks(chunk_index, 1, 4, threshold_rank=3)
    chosen = [selector(batch(excluded=[7]), np.random.default_rng(seed)) for seed in range(30)]
    assert {len(one.targets[7].chunks) for one in chosen} == {2}
    assert {word for one in chosen for word in kept_words(one.targets[7])} == set(kept_words(segmented("other5")))


def test_an_index_without_a_document_or_with_other_chunks_is_refused(chunk_index: Index) -> None:
    changed = keep_chunks(segmented("query"), range(5))
    with pytest.raises(TrainingError) as raised:
        EvidenceChunks(chunk_index, 2, 2, threshold_rank=3)(
            PairBatch([changed], batch().targets, batch().positives, batch().excluded), np.random.default_rng(0)
        )
    assert str(raised.value) == (
        f"{chunk_index.snapshot.folder} holds 8 chunks of query, the encoder in training cuts 5; index the corpus with "
        "the encoder that training starts from"
    )
    stranger = ENCODER.segment(document("stranger", "word"))
    with pytest.raises(QueryError, match=r"^no document 'stranger' among 9 in "):
        EvidenceChunks(chunk_index, 2, 2, threshold_rank=3)(
            PairBatch([stranger], batch().targets, batch().positives, batch().excluded), np.random.default_rng(0)
        )


RANKING = [("a", 1.0), ("b", 0.9), ("c", 0.8), ("d", 0.7), ("e", 0.4)]


@pytest.mark.parametrize(
    ("related", "margin", "expected"),
    [
        (["a"], 0.85, ["c", "d", "e"]),  # at most 0.85
        (["a"], 0.8, ["c", "d", "e"]),  # the bound itself counts
        (["a"], 0.75, ["d", "e"]),
        (["c"], 1.0, ["d", "e"]),  # a document above a positive may be a positive, too
        (["c", "e"], 1.0, ["d"]),  # the best related target decides
        (["c", "e"], 0.85, []),
        (["a", "b", "c", "d", "e"], 1.0, []),
        (["other"], 0.5, ["a", "b", "c", "d", "e"]),  # no related target is in the ranking
        ([], 0.5, ["a", "b", "c", "d", "e"]),
    ],
)
def test_negatives_score_below_the_margin_of_the_best_related_target(
    related: list[str], margin: float, expected: list[str]
) -> None:
    assert hard_negatives(RANKING, dict.fromkeys(related, 1), frozenset(), margin) == expected


def test_held_out_documents_are_no_negatives_but_may_set_the_bound() -> None:
    assert hard_negatives(RANKING, {"c": 1}, frozenset("d"), 1.0) == ["e"]
    assert hard_negatives(RANKING, {"c": 1}, frozenset("c"), 1.0) == ["d", "e"]


def corpus_of(index_documents: int, pairs: Judgments, held_out: tuple[str, ...] = ()) -> TrainingCorpus:
    return training_corpus(make_corpus(index_documents), pairs, held_out=held_out)


def test_negatives_of_an_index_are_the_hits_of_its_search_and_unknown_documents_are_refused(index: Index) -> None:
    miner = index_miner(index, corpus_of(60, {}), depth=20)
    for query_id in ("doc004", "doc031"):
        hits = index.search(query_id, Request(k=20, exact=True)).hits
        assert miner(query_id) == [hit.doc_id for hit in hits]
    with pytest.raises(QueryError, match=r"^no document 'x' among 60 in "):
        index_miner(index, corpus_of(60, {}))("x")


def test_an_index_leaves_out_related_too_similar_held_out_and_foreign_documents(index: Index) -> None:
    hits = index.search("doc004", Request(k=60, exact=True)).hits
    related, held_out = hits[1], hits[6]
    corpus = corpus_of(55, {"doc004": {related.doc_id: 1}}, (held_out.doc_id,))
    expected = [
        hit.doc_id
        for hit in hits
        if hit.score <= 0.9 * related.score and hit.doc_id < "doc055" and hit not in (related, held_out)
    ]
    assert expected
    assert index_miner(index, corpus, margin=0.9)("doc004") == expected


TEXTS = {
    "query": "zebra crossing the street near a house",
    "rare": "one zebra near the street",
    "common": "a street and a house",
    "house": "house house house house",
    "other": "nothing of it",
    "words": "the of and",
    "signs": "!?",
}


def lexical(pairs: Judgments | None = None, **options: float) -> Miner:
    pytest.importorskip("bm25s")
    documents = [make_document(name, text) for name, text in TEXTS.items()]
    return lexical_miner(training_corpus(documents, pairs or {}), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("query_id", "related", "options", "expected"),
    [
        # Counted by hand: zebra is in 2 texts, near in 2, street in 3, house in 3.
        ("query", {}, {}, ["rare", "common", "house"]),
        ("query", {}, {"depth": 1}, ["rare"]),
        ("query", {"rare": 1}, {}, ["common", "house"]),
        ("query", {"house": 1}, {"margin": 1.0}, []),
        ("words", {}, {}, []),
        ("signs", {}, {}, []),
    ],
)
def test_lexical_negatives_share_rare_words_first_and_are_neither_related_nor_too_similar(
    query_id: str, related: dict[str, int], options: dict[str, float], expected: list[str]
) -> None:
    assert lexical({"query": related} if related else {}, **options)(query_id) == expected


def test_a_corpus_without_words_has_no_negatives_and_without_bm25s_the_error_has_the_install_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("bm25s")
    documents = [make_document("one", "the"), make_document("other", "of and")]
    assert lexical_miner(training_corpus(documents, {}))("one") == []
    monkeypatch.setitem(sys.modules, "bm25s", None)
    with pytest.raises(MissingExtra) as raised:
        lexical_miner(training_corpus(make_corpus(3), {}))
    assert str(raised.value).startswith("mining with BM25 needs bm25s; install it: pip install 'accelerate>=1.10' ")
