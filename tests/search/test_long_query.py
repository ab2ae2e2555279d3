"""Long queries are pooled, and scored as a loop does."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import engine.search.query as long_query_module
from engine.encoders.encoder import EncodedDocument, unit
from engine.errors import QueryError
from engine.index import Index
from engine.result import Status
from engine.scoring.evidence import Scoring
from engine.search.query import MOST_CHUNKS, Query, Unpinned, left_out_sections, pool_long, prepare, query_stretches
from engine.search.request import Request
from engine.search.scorer import Scorer
from engine.store.reference import Reference
from engine.store.shards import coarse
from engine.store.snapshot import IndexSnapshot
from engine.text.document import Document
from engine.text.section_kinds import SectionKind, section_kinds
from engine.text.segmentation import Chunk, Coverage, Section, Span
from engine.words.counts import PackedWords, count_documents
from engine.words.likelihood import collect
from engine.words.segmenter import segmenter_of
from indexer.building.builder import build
from tests.fakes import FakeEncoder, make_document
from tests.strict_schema import check
from tests.text.test_headings import BODY, CITED, THANKS, document


def encoded(lengths: list[int], seed: int = 0) -> EncodedDocument:
    """Sections of the given numbers of chunks; a chunk has one to nine tokens and ten characters."""
    rng = np.random.default_rng(seed)
    sections = np.repeat(np.arange(len(lengths)), lengths).tolist()
    tokens = rng.integers(1, 10, len(sections)).tolist()
    spans = tuple(
        Chunk(section, 10 * at, 10 * at + 9, n) for at, (section, n) in enumerate(zip(sections, tokens, strict=True))
    )
    rows = unit(rng.standard_normal((len(sections), 4)).astype(np.float32))
    total = sum(tokens)
    return EncodedDocument(rows[0], rows[:1], rows, spans, Coverage(total, total))


def runs_by_hand(vectors: EncodedDocument, per_run: int) -> list[list[int]]:
    runs: list[list[int]] = []
    for number, chunk in enumerate(vectors.chunk_spans):
        last = vectors.chunk_spans[number - 1].section if number else None
        if chunk.section != last or len(runs[-1]) == per_run:
            runs.append([])
        runs[-1].append(number)
    return runs


@given(st.lists(st.integers(1, 9), min_size=1, max_size=8), st.integers(1, 30))
def test_pooled_chunks_are_the_runs_of_a_loop(lengths: list[int], most: int) -> None:
    vectors = encoded(lengths)
    pooled = pool_long(vectors, most)
    if len(vectors.chunks) <= most:
        assert pooled is vectors
        return
    assert len(pooled.chunks) <= most
    per_run = next((r for r in range(1, max(lengths)) if len(runs_by_hand(vectors, r)) <= most), max(lengths))
    runs = runs_by_hand(vectors, per_run)
    runs = sorted(sorted(runs, key=lambda run: -sum(vectors.chunk_spans[at].n_tokens for at in run))[:most])
    for run, row, span in zip(runs, pooled.chunks, pooled.chunk_spans, strict=True):
        first, last = vectors.chunk_spans[run[0]], vectors.chunk_spans[run[-1]]
        n_tokens = [vectors.chunk_spans[at].n_tokens for at in run]
        assert span == Chunk(first.section, first.start, last.stop, sum(n_tokens))
        total = sum(n * vectors.chunks[at] for n, at in zip(n_tokens, run, strict=True))
        np.testing.assert_allclose(row, total / np.linalg.norm(total), atol=1e-5)
    n_kept = sum(span.n_tokens for span in pooled.chunk_spans)
    assert pooled.coverage == Coverage(n_kept, vectors.coverage.tokens_total, per_run)


def test_a_book_is_pooled_by_five_and_some_hundreds_of_chunks_are_not() -> None:
    vectors = encoded([MOST_CHUNKS])
    assert pool_long(vectors) is vectors
    assert len(pool_long(encoded([MOST_CHUNKS + 1])).chunks) == MOST_CHUNKS // 2 + 1
    pooled = pool_long(encoded([50] * 50))
    assert (len(pooled.chunks), pooled.coverage.chunks_pooled, pooled.coverage.share) == (500, 5, 1.0)


def test_of_too_many_sections_the_longest_are_kept_and_the_coverage_counts_their_tokens() -> None:
    vectors = encoded([1, 1, 1])
    spans = [replace(chunk, n_tokens=n) for chunk, n in zip(vectors.chunk_spans, (5, 2, 3), strict=True)]
    pooled = pool_long(replace(vectors, chunk_spans=tuple(spans), coverage=Coverage(10, 20)), 2)
    assert [chunk.section for chunk in pooled.chunk_spans] == [0, 2]
    assert pooled.coverage == Coverage(8, 20, 1)


def test_a_pooled_query_has_hits_whose_parts_add_up(
    index: Index, corpus: list[Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long_query_module, "MOST_CHUNKS", 7)
    query = make_document("long", [(f"part {number}", corpus[number].text) for number in range(4)])
    result = index.search(query)
    assert (result.query_coverage.share, result.query_coverage.chunks_pooled) == (1.0, 9)
    assert index.search(query, Request(exact=True)).status is Status.PARTIAL
    assert {hit.metadata["topic"] for hit in result.hits[:4]} == {0, 1, 2, 3}
    for shown in (str(result), result._repr_html_()):
        assert "up to 9 chunks pooled into one" in shown
    written = check(result.to_dict())
    assert (written["status"], written["query"]["coverage"]["chunks_pooled"]) == ("partial", 9)
    for hit in result.hits:
        assert hit.breakdown.score == pytest.approx(hit.score, abs=1e-6)
        for pair in hit.breakdown.pairs:
            section = query.sections[pair.query_section]
            assert all(section.start <= part.query.start < part.query.stop <= section.stop for part in pair.parts)
    assert len({part.query for hit in result.hits for pair in hit.breakdown.pairs for part in pair.parts}) <= 7


PAPER = document(("1 Pumps", BODY), ("References", CITED), ("Acknowledgments", THANKS))
PUMPS, REFERENCES, _ = PAPER.sections


def test_stretches_of_a_query_do_not_overlap_and_without_skipped_sections_stay() -> None:
    start = REFERENCES.start
    common = [Span(3, 9), Span(start - 5, start + 4), Span(start + 20, start + 30)]
    assert query_stretches(PAPER, np.array([False, True, False]), common, ()) == [
        Span(3, 9),
        Span(start - 5, REFERENCES.stop),
    ]
    common = [Span(3, 9)]
    assert query_stretches(PAPER, np.zeros(3, bool), common, ()) == common


def test_sections_are_left_out_by_kind_or_weight_but_never_all_of_them() -> None:
    kinds = section_kinds(PAPER)
    assert left_out_sections(kinds, {SectionKind.REFERENCES}).tolist() == [False, True, False]
    assert left_out_sections(kinds, {SectionKind.REFERENCES}, (1.0, 2.0, 0.0)).tolist() == [False, True, True]
    assert left_out_sections(kinds, ()).tolist() == [False, False, False]
    assert left_out_sections((), {SectionKind.APPENDIX}).tolist() == [False]
    only = document(("References", CITED))
    with pytest.raises(QueryError, match=r"has no section but those to be skipped \(references\); skip fewer"):
        query_stretches(only, np.array([True]), [], ["references"])


def test_words_are_no_neighbours_across_a_skipped_section() -> None:
    """The blanks in the place of a section would be white space between its neighbours."""
    text = "moving water "
    sections = [
        Section("", (), 0, len(text)),
        Section("References", ("References",), len(text), len(text) + len(CITED)),
    ]
    end = text + CITED
    paper = Document("a", "a", end + "upper basin", (*sections, Section("", (), len(end), len(end) + 11)))
    nothing = np.empty(0, np.uint64), coarse(np.empty((0, 0), np.float16)), np.empty(0, np.int64)
    counts = count_documents(segmenter_of("english"), [paper])
    background = Unpinned(Reference(0, 1, *nothing, collect([counts])), "english")
    query = Query(paper, EncodedDocument.unencoded(0), skip=frozenset([SectionKind.REFERENCES]))
    prepared = prepare(query, background, Scoring())
    expected = segmenter_of("english").segment("moving water . upper basin")
    assert prepared.words is not None and prepared.pairs is not None
    assert set(prepared.words.terms.tolist()) == set(expected.words.tolist())
    assert set(prepared.pairs.terms.tolist()) == set(expected.pairs.tolist())


N = 60


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, corpus: list[Document]) -> Path:
    folder = tmp_path_factory.mktemp("scored") / "x.lm"
    build(folder, corpus, encoder=FakeEncoder(), factory="IVF4,Flat", recall_floor=0.0)
    return folder


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> dict[str, Counter[int]]:
    """How often vectors and term counts of each document were read."""
    counts: dict[str, Counter[int]] = {"vectors": Counter(), "words": Counter()}
    vectors, words = IndexSnapshot.chunk_vectors, IndexSnapshot.packed_words

    def counted_vectors(self: IndexSnapshot, positions: NDArray[np.int64]) -> object:
        counts["vectors"].update(positions.tolist())
        return vectors(self, positions)

    def counted_words(
        self: IndexSnapshot, positions: NDArray[np.int64], *, apart: bool = False
    ) -> tuple[NDArray[np.int64], PackedWords]:
        counts["words"].update(positions.tolist())
        return words(self, positions, apart=apart)

    monkeypatch.setattr(IndexSnapshot, "chunk_vectors", counted_vectors)
    monkeypatch.setattr(IndexSnapshot, "packed_words", counted_words)
    return counts


@pytest.mark.parametrize("k", [5, 15, 40])
@pytest.mark.parametrize("exact", [False, True])
def test_a_tier_reads_each_candidate_once(
    folder: Path, reads: dict[str, Counter[int]], monkeypatch: pytest.MonkeyPatch, k: int, exact: bool
) -> None:
    monkeypatch.setattr("engine.search.partition.TIERS", ((10, 20), (20, 40)))
    with Index.open(folder, encoder=FakeEncoder()) as index:
        query = index.stored_query("doc003")
        for counts in reads.values():
            counts.clear()
        result = index.searcher().search(query, Request(k=k, exact=exact))
    n_hits = len(result.hits)
    assert n_hits == k
    n_tiers = 1 if exact else {5: 1, 15: 2, 40: 3}[k]
    assert max(reads["words"].values()) == n_tiers
    # Where many documents are compared, the few best are compared again, to the last digit.
    n_again = sum(1 for count in reads["vectors"].values() if count > n_tiers)
    assert n_again == (n_hits if exact and k < N / 2 else {5: 5, 15: 5, 40: 0}[k])
    if not exact:
        assert len(reads["vectors"]) == {5: 20, 15: 40, 40: N}[k]


def test_scoring_all_at_once_and_narrowing_down_give_the_same_ranking(folder: Path) -> None:
    with Index.open(folder, encoder=FakeEncoder()) as index:
        scorer = Scorer(index.snapshot, Scoring())
        prepared = index.searcher().prepare(index.stored_query("doc003"))
        everything = np.arange(N)
        narrowed = scorer.best_of(prepared, scorer.pools([prepared], everything)[0], 10)
        at_once = scorer.ranked(scorer.exact(prepared, everything), 10)
    assert narrowed.positions.tolist() == at_once.positions.tolist()
    assert narrowed.scores.tolist() == at_once.scores.tolist()
    assert narrowed.matches.chunks.tolist() == at_once.matches.chunks.tolist()
    counts = narrowed.matches.chunks >= 0  # below its threshold a similarity decides nothing
    assert narrowed.matches.similarities[counts].tolist() == at_once.matches.similarities[counts].tolist()
    for name in ("chunks", "words", "pairs"):
        one, other = getattr(narrowed.components, name), getattr(at_once.components, name)
        np.testing.assert_allclose(one, other, rtol=1e-12)
