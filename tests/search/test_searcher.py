"""Every way to search gives the scores of the equation, computed here pair by pair."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from math import log
from pathlib import Path
from statistics import correlation

import numpy as np
import pytest

import engine.scoring.evidence as similarity_module
import engine.search.candidates as neighbours_module
from engine.encoders.encoder import EncodedDocument, Vectors
from engine.index import Index
from engine.result import Hit, Result, Status
from engine.scoring.evidence import Scoring
from engine.search.query import Query, as_stored
from engine.search.request import Request
from engine.search.searcher import Searcher
from engine.store.checks import content_hash
from engine.store.snapshot import IndexSnapshot
from engine.store.writer import Writer
from engine.text.document import Document
from engine.words.segmenter import WordSegmenter
from indexer.building.builder import build
from indexer.generation.reference import rebase
from tests.fakes import FakeEncoder, make_corpus, make_document

BOILERPLATE = "permission is hereby granted to any person who"  # eight words: a chunk of its own
SMALL = Scoring(exceeding=2)
CHUNKS = Scoring(chunk_weight=1, word_weight=0, pair_weight=0)


def stored(documents: Sequence[Document]) -> dict[str, EncodedDocument]:
    encoded = FakeEncoder().encode(documents)
    return {document.doc_id: as_stored(one) for document, one in zip(documents, encoded, strict=True)}


def scores_by_hand(
    query: Document, targets: Sequence[Document], reference: Sequence[Document], scoring: Scoring
) -> dict[str, float]:
    """The equation of `engine.scoring.evidence`, by loops over chunks and terms; only what is above 0."""
    weights = scoring.weights()
    sample = [one for one in reference if content_hash(one) != content_hash(query)]
    vectors = stored([*reference, *targets, query])
    limits = limits_by_hand(vectors, query, sample, scoring)
    words, pairs = WordTotals(reference, 0), WordTotals(reference, 1)
    scores: dict[str, float] = {}
    for target in targets:
        components = {
            "chunks": chunks_by_hand(vectors, query, target, limits, scoring),
            "words": words.score(query, target),
            "pairs": pairs.score(query, target),
        }
        scores[target.doc_id] = sum(weights[name] * value**scoring.root for name, value in components.items())
    return {name: score for name, score in scores.items() if score > 0}


@cache
def scores_of_query(scoring: Scoring) -> dict[str, float]:
    """The scores of `QUERY` in the corpus of all indexes here."""
    corpus = make_corpus(60)
    return scores_by_hand(QUERY, corpus, corpus, scoring)


def theta_by_hand(similarities: list[float], scoring: Scoring) -> float:
    m = min(scoring.exceeding, len(similarities) // 5)
    return min(1.0, max(0.0, sorted(similarities, reverse=True)[m])) if m else 0.0


def limits_by_hand(
    vectors: dict[str, EncodedDocument], query: Document, sample: list[Document], scoring: Scoring
) -> list[tuple[float, float, float]]:
    """Of each chunk of the query: thresholds of its best match and of that joined with the opening, and the share."""
    kept = [[in_a_byte(row) for row in vectors[one.doc_id].chunks] for one in sample]
    limits = []
    for q in vectors[query.doc_id].chunks:
        best, openings = [max(float(q @ row) for row in rows) for rows in kept], [float(q @ rows[0]) for rows in kept]
        a = scoring.opening
        if len(kept) >= 20:
            agreement = correlation(best, openings) if min(np.ptp(best), np.ptp(openings)) > 0 else 0.0
            a *= min(1.0, max(0.0, (agreement - 0.2) / 0.2))
        joined = [similarities_by_hand(q, rows, a)[1] for rows in kept]
        limits.append((theta_by_hand(best, scoring), theta_by_hand(joined, scoring), a))
    return limits


def similarities_by_hand(q: Vectors, rows: Sequence[Vectors], a: float) -> tuple[float, float]:
    best = max(float(q @ row) for row in rows)
    return best, (1 - a) * min(1.0, best) + a * float(q @ rows[0])


def chunks_by_hand(
    vectors: dict[str, EncodedDocument],
    query: Document,
    target: Document,
    limits: list[tuple[float, float, float]],
    scoring: Scoring,
) -> float:
    above = below = 0.0
    mine = vectors[query.doc_id]
    for q, chunk, (theta, phi, a) in zip(mine.chunks, mine.chunk_spans, limits, strict=True):
        best, joined = similarities_by_hand(q, vectors[target.doc_id].chunks, a)
        own = 1 - a + a * min(1.0, float(q @ mine.chunks[0]))
        margin = max(0.0, min(1.0, best) - theta) / (1 - theta)
        if a and own - phi > 0.01:
            alone = margin * min(1.0, max(0.0, (margin - 0.4) / 0.4))
            margin = max(alone, min(3 * margin, max(0.0, joined - phi) / max(0.01, own - phi), 1.0))
        whole = chunk.n_tokens**0.5 * (1 - theta) ** scoring.power
        above += whole * margin**scoring.power
        below += whole
    return above / below


def in_a_byte(row: Vectors) -> Vectors:
    """A row as the reference keeps it: whole steps, 127 for its largest number, scaled to keep its squared length."""
    steps = np.round(row * (127 / float(np.abs(row).max())))
    return steps * float(row @ row) / float(row @ steps)


@cache
def terms_of(text: str) -> tuple[Counter[int], Counter[int]]:
    """How often a text has each word, and each pair of words."""
    terms = WordSegmenter("english").segment(text)
    return Counter(terms.words.tolist()), Counter(terms.pairs.tolist())


class WordTotals:
    """Counts of terms in a corpus: words (kind 0), or pairs of words (kind 1)."""

    def __init__(self, corpus: Sequence[Document], kind: int) -> None:
        self._kind = kind
        self._counts = Counter[int]()
        for document in corpus:
            self._counts.update(terms_of(document.text)[kind])
        self._total = sum(self._counts.values())

    def score(self, query: Document, target: Document) -> float:
        mine = terms_of(query.text)[self._kind]

        def likelihood(of: Counter[int]) -> float:
            length = sum(of.values()) or 1
            return sum(
                (1 + log(n)) * log(1 + 0.05 * of[term] * self._total / (length * max(1, self._counts[term])))
                for term, n in mine.items()
            )

        return min(1.0, likelihood(terms_of(target.text)[self._kind]) / likelihood(mine)) if likelihood(mine) else 0.0


def assert_is(result: Result, expected: dict[str, float], k: int = 10) -> None:
    ranked = sorted(expected, key=lambda name: -expected[name])[:k]
    assert [hit.doc_id for hit in result.hits] == ranked
    np.testing.assert_allclose([hit.score for hit in result.hits], [expected[name] for name in ranked], atol=1e-6)
    assert [hit.rank for hit in result.hits] == list(range(1, len(ranked) + 1))
    assert result.n_found == len(expected)
    for hit in result.hits:
        passages = sum(part.contribution for pair in hit.breakdown.pairs for part in pair.parts)
        words = sum(term.contribution for term in hit.breakdown.terms)
        assert abs(passages + words - hit.score) < 1e-6
        assert abs(hit.breakdown.score - hit.score) < 1e-6
        assert 0 < hit.score <= 1


def assert_same(some: Sequence[Hit], others: Sequence[Hit]) -> None:
    assert [(hit.rank, hit.doc_id) for hit in some] == [(hit.rank, hit.doc_id) for hit in others]
    np.testing.assert_allclose([hit.score for hit in some], [hit.score for hit in others], atol=1e-6)


QUERY = make_document("query", [("mine", "topic3word1 topic3word2 common7 topic3word9 topic4word5 common1 " * 9)])


@pytest.fixture(scope="module")
def ivf_folder(tmp_path_factory: pytest.TempPathFactory, corpus: list[Document]) -> Path:
    folder = tmp_path_factory.mktemp("ivf") / "x.lm"
    build(folder, corpus, encoder=FakeEncoder(), factory="IVF4,Flat")  # measuring starts at nprobe 4: all lists
    return folder


@pytest.fixture(scope="module")
def bare_folder(tmp_path_factory: pytest.TempPathFactory, corpus: list[Document]) -> Path:
    """No generation: everything is fresh."""
    folder = tmp_path_factory.mktemp("bare") / "x.lm"
    encoder = FakeEncoder()
    with Writer(folder) as writer:
        writer.claim({"name": encoder.name, "fingerprint": encoder.fingerprint, "width": encoder.width})
        for first in range(0, len(corpus), 13):
            batch = corpus[first : first + 13]
            writer.commit(list(zip(batch, encoder.encode(batch), strict=True)))
    return folder


@pytest.fixture(scope="module")
def mixed_folder(tmp_path_factory: pytest.TempPathFactory, corpus: list[Document]) -> Path:
    """A Flat generation over 50 documents, 5 of them gone and 5 changed since, 10 fresh ones; the same corpus."""
    folder = tmp_path_factory.mktemp("mixed") / "x.lm"
    encoder = FakeEncoder()
    gone = [make_document(f"gone{number}", [("g", "topic3word1 topic3word2 " * 8)]) for number in range(5)]
    early = [replace(one, text=one.text.replace("topic", "tropic")) if at < 5 else one for at, one in enumerate(corpus)]
    build(folder, [*gone, *early[:45]], encoder=encoder, factory="Flat")
    with Writer(folder) as writer:
        batch = [*corpus[:5], *corpus[45:]]
        writer.commit(list(zip(batch, encoder.encode(batch), strict=True)))
        writer.remove([1, 2, 3, 4, 5])
    rebase(folder)
    return folder


FOLDERS = ["built_folder", "ivf_folder", "bare_folder", "mixed_folder"]


@pytest.fixture(params=FOLDERS)
def any_index(request: pytest.FixtureRequest) -> Index:
    opened = Index.open(request.getfixturevalue(request.param), encoder=FakeEncoder())
    request.addfinalizer(opened.close)
    return opened


@pytest.fixture(params=[None, SMALL, CHUNKS, Scoring(exceeding=13), Scoring(power=1.0, root=1.0)], ids=repr)
def scoring(request: pytest.FixtureRequest) -> Scoring | None:
    return request.param  # type: ignore[no-any-return]


@pytest.mark.slow
@pytest.mark.parametrize("exact", [False, True])
def test_a_search_equals_the_equation(any_index: Index, scoring: Scoring | None, exact: bool) -> None:
    expected = scores_of_query(scoring or Scoring())
    assert_is(any_index.search(QUERY, Request(scoring=scoring, exact=exact)), expected)


@pytest.mark.slow
def test_a_search_by_id_leaves_the_document_itself_out(any_index: Index, corpus: list[Document]) -> None:
    for document in corpus[::9]:
        others = [one for one in corpus if one is not document]
        expected = scores_by_hand(document, others, corpus, SMALL)
        result = any_index.search(document.doc_id, Request(scoring=SMALL))
        assert_is(result, expected)
        assert result.n_searched == len(corpus) - 1


FILTERS: dict[str, Callable[..., bool]] = {
    "family = 'even'": lambda _, family, **rest: family == "even",
    "year >= 2001": lambda _, year, **rest: year >= 2001,
    "topic = 3": lambda _, topic, **rest: topic == 3,
    "topic in (3, 4) and year > 2010": lambda _, topic, year, **rest: topic in (3, 4) and year > 2010,
    "doc_id = 'doc013'": lambda doc_id, **rest: doc_id == "doc013",
    "doc_id != 'doc013'": lambda doc_id, **rest: doc_id != "doc013",
    "topic = 99": lambda _, **rest: False,
    "tags = 't3' or tags = 'n1'": lambda _, tags, **rest: "t3" in tags or "n1" in tags,
}


@pytest.mark.slow
@pytest.mark.parametrize("where", FILTERS)
def test_a_filter_leaves_hits_out_and_scores_as_they_are(any_index: Index, corpus: list[Document], where: str) -> None:
    kept = [one for one in corpus if FILTERS[where](one.doc_id, **one.metadata)]
    result = any_index.search(QUERY, Request(where=where, scoring=SMALL))
    assert_is(result, scores_by_hand(QUERY, kept, corpus, SMALL))
    assert result.n_searched == len(kept)


@pytest.mark.parametrize("where", ["family = 'even'", "year >= 2001", "doc_id != 'doc013'"])
def test_a_filter_gives_the_same_hits_by_the_index_as_by_a_scan(
    any_index: Index, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scanned = any_index.search(QUERY, Request(where=where, scoring=SMALL, exact=True))
    monkeypatch.setattr(neighbours_module, "SCAN_BELOW_CHUNKS", 0)
    monkeypatch.setattr(neighbours_module, "FIRST_DEPTH", 2)
    found = any_index.search(QUERY, Request(where=where, scoring=SMALL))
    assert_same(found.hits, scanned.hits)


def test_depth_grows_until_there_are_enough_documents(any_index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    exact = any_index.search(QUERY, Request(exact=True))
    monkeypatch.setattr(neighbours_module, "FIRST_DEPTH", 1)
    shallow = any_index.search(QUERY)
    assert_same(shallow.hits, exact.hits)


def test_a_query_of_many_blocks_scores_the_same(any_index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(similarity_module, "QUERY_BLOCK", 3)
    monkeypatch.setattr("engine.search.scorer.SCAN_CHUNKS", 20)
    monkeypatch.setattr("engine.search.scorer.SCAN_BLOCK_DOCUMENTS", 7)
    expected = scores_of_query(SMALL)
    assert_is(any_index.search(QUERY, Request(scoring=SMALL)), expected)
    assert_is(any_index.search(QUERY, Request(scoring=SMALL, exact=True)), expected)


def test_a_scan_of_few_chunks_at_once_finds_the_same(built_folder: Path, corpus: list[Document]) -> None:
    with IndexSnapshot(built_folder) as snapshot:
        query = Query(corpus[7], as_stored(FakeEncoder().encode([corpus[7]])[0]))
        whole, small = (Searcher(snapshot, scan_chunks=one).search(query, Request(exact=True)) for one in (None, 20))
    assert_same(small.hits, whole.hits)


def test_k_larger_than_the_corpus_gives_all_that_is_found_and_scores_never_rise(any_index: Index) -> None:
    expected = scores_of_query(Scoring())
    assert_is(any_index.search(QUERY, Request(k=10_000)), expected, k=10_000)
    scores = [hit.score for hit in any_index.search(QUERY, Request(k=1000)).hits]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 3, 7])
def test_pages_join_to_the_whole_list(any_index: Index, size: int) -> None:
    whole = any_index.search(QUERY, Request(k=1000))
    pages = [any_index.search(QUERY, Request(k=size, offset=offset)) for offset in range(0, whole.n_found + size, size)]
    assert_same([hit for page in pages for hit in page.hits], whole.hits)
    assert pages[-1].hits == ()


@pytest.mark.slow
@pytest.mark.parametrize("factory", ["Flat", "IVF4,Flat"])
def test_passages_of_boilerplate_contribute_exactly_nothing(tmp_path: Path, factory: str) -> None:
    documents = make_corpus(40, boilerplate=BOILERPLATE)
    build(tmp_path / "x.lm", documents, encoder=FakeEncoder(), factory=factory)
    query = make_document("q", [("licence", BOILERPLATE), ("own", "topic3word1 topic3word2 common7 topic3word9")])
    only = make_document("only", [("licence", BOILERPLATE)])
    with Index.open(tmp_path / "x.lm", encoder=FakeEncoder()) as index:
        for exact in (False, True):
            result = index.search(query, Request(k=100, scoring=CHUNKS, exact=exact))
            assert {pair.query_section for hit in result.hits for pair in hit.breakdown.pairs} == {1}
            assert index.search(only, Request(scoring=CHUNKS, exact=exact)).hits == ()


def test_nothing_in_common_finds_nothing(tmp_path: Path) -> None:
    encoder = FakeEncoder(width=2)
    build(tmp_path / "x.lm", [make_document("a", "word")], encoder=encoder)
    with Index.open(tmp_path / "x.lm", encoder=encoder) as index:
        vector = index.snapshot.chunk_vectors(np.array([0]))[0]
        query = index.stored_query("a")
        against = replace(query.vectors, chunks=-vector, document=-query.vectors.document)
        result = Searcher(index.snapshot, CHUNKS).search(Query(query.document, against))
    assert (result.hits, result.n_found, result.n_searched) == ((), 0, 1)


def test_an_index_of_one_document_or_none_finds_what_is_there(tmp_path: Path, corpus: list[Document]) -> None:
    build(tmp_path / "x.lm", corpus[3:4], encoder=FakeEncoder())
    with Index.open(tmp_path / "x.lm", encoder=FakeEncoder()) as index:
        assert [hit.doc_id for hit in index.search(QUERY).hits] == ["doc003"]
        assert index.search("doc003").hits == ()
        assert index.search(QUERY, Request(where="doc_id != 'doc003'")).hits == ()
    build(tmp_path / "x.lm", corpus[:5], encoder=FakeEncoder(), factory="Flat")
    build(tmp_path / "x.lm", [], encoder=FakeEncoder(), prune=True)
    with Index.open(tmp_path / "x.lm", encoder=FakeEncoder()) as index:
        for exact in (False, True):
            result = index.search(QUERY, Request(exact=exact, where="year > 0"))
            assert (result.hits, result.n_found, result.n_searched) == ((), 0, 0)
            assert index.search(QUERY, Request(exact=exact)).hits == ()


@pytest.mark.slow
def test_a_search_with_a_file_equals_a_search_with_its_indexed_copy(any_index: Index, corpus: list[Document]) -> None:
    document = corpus[17]
    by_file = any_index.search(document, Request(where=f"doc_id != '{document.doc_id}'", k=50, exact=True))
    by_id = any_index.search(document.doc_id, Request(k=50, exact=True))
    assert [(hit.doc_id, hit.breakdown) for hit in by_file.hits] == [(hit.doc_id, hit.breakdown) for hit in by_id.hits]


def test_spans_show_text_that_is_there(any_index: Index, corpus: list[Document]) -> None:
    query = corpus[21]
    result = any_index.search(query)
    shown = json.loads(json.dumps(result.to_dict(n_pairs=None)))["hits"]
    for hit, as_dict in zip(result.hits, shown, strict=True):
        for pair, pair_dict in zip(hit.breakdown.pairs, as_dict["parts"][: len(hit.pairs)], strict=True):
            for part, part_dict in zip(pair.parts, pair_dict["spans"], strict=True):
                target = hit.document.text[part.target.start : part.target.stop]
                assert part_dict["target"]["text"] == target
                assert part_dict["query"]["text"] == query.text[part.query.start : part.query.stop]
                assert target.strip()
                section = hit.document.sections[pair.target_section]
                assert section.start <= part.target.start < part.target.stop <= section.stop


def test_the_similarity_of_a_part_is_that_of_its_spans(any_index: Index) -> None:
    result = any_index.search(QUERY)
    for hit in result.hits[:3]:
        for pair in hit.breakdown.pairs:
            for part in pair.parts:
                spans = [QUERY.text[part.query.start : part.query.stop]]
                spans.append(hit.document.text[part.target.start : part.target.stop])
                one, other = (stored([make_document("s", span)])["s"].chunks[0] for span in spans)
                assert part.similarity == pytest.approx(float(one @ other), abs=1e-5)


@pytest.mark.parametrize(
    ("fixture", "status"),
    [
        ("built_folder", "certified"),
        ("ivf_folder", "estimated"),
        ("bare_folder", "certified"),
        ("mixed_folder", "certified"),
    ],
)
def test_the_status_shows_whether_all_documents_were_scored(
    fixture: str, status: str, request: pytest.FixtureRequest
) -> None:
    with Index.open(request.getfixturevalue(fixture), encoder=FakeEncoder()) as index:
        assert index.search(QUERY).status is Status(status)
        assert index.search(QUERY, Request(exact=True)).status is Status.CERTIFIED
        assert index.search(QUERY, Request(where="topic = 3")).status is Status.CERTIFIED
