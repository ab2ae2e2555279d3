"""FAISS indexes on disk, and postings of words."""

import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from engine.encoders.encoder import Vectors, unit
from engine.errors import BudgetExceeded, IndexDamaged, IndexMismatch
from engine.store.ann import AnnIndex, Ids
from engine.store.durable import Checksum
from engine.store.postings import BLOCK_DOCUMENTS, LEFT_OUT, MOST_LEFT_OUT, Postings
from engine.text.document import Document
from engine.words.counts import TermTable, WordTables, count_words
from engine.words.likelihood import ALPHA, QueryTerms, TermStatistics, collect, query_terms
from engine.words.segmenter import WordSegmenter
from indexer.generation.resources import factory_for, index_bytes, is_exact_factory, training_size

WIDTH = 16


@pytest.fixture(scope="module")
def rows() -> Vectors:
    return unit(np.random.default_rng(0).standard_normal((500, WIDTH)).astype(np.float32))


@pytest.fixture(scope="module")
def ids() -> Ids:
    return np.arange(500) * 7 + 3


def build(factory: str, rows: Vectors, ids: Ids) -> AnnIndex:
    return AnnIndex.build(factory, WIDTH, lambda: rows, [(ids[:200], rows[:200]), (ids[200:], rows[200:])])


@pytest.mark.parametrize("factory", ["Flat", "IDMap2,Flat", "IVF8,Flat"])
@pytest.mark.parametrize("n_queries", [1, 40])
def test_results_are_those_of_a_matrix_product_under_our_ids(
    rows: Vectors, ids: Ids, factory: str, n_queries: int
) -> None:
    index = build(factory, rows, ids)
    index.nprobe = 8
    queries = rows[:n_queries] + 0.05
    found, similarities = index.search(queries, 10)
    table = queries @ rows.T
    order = np.argsort(-table, axis=1)[:, :10]
    assert np.array_equal(found, ids[order])
    np.testing.assert_allclose(similarities, np.take_along_axis(table, order, axis=1), atol=1e-5)


@pytest.mark.parametrize("factory", ["SQ8", "IVF8,PQ8x4fs", "IVF8,SQ8", "PCA8,IVF8,Flat", "HNSW16", "RR16,IVF8,Flat"])
def test_other_factories_take_our_ids_and_find_most(rows: Vectors, ids: Ids, factory: str) -> None:
    index = build(factory, rows, ids)
    index.nprobe = 8
    found, _ = index.search(rows[:50], 20)
    assert np.mean([own in row for own, row in zip(ids, found.tolist(), strict=False)]) > 0.9


@pytest.mark.parametrize("factory", ["Flat", "IVF8,Flat", "IVF8,PQ8x4fs"])
def test_an_index_written_and_opened_gives_the_same_results(
    rows: Vectors, ids: Ids, factory: str, tmp_path: Path
) -> None:
    index = build(factory, rows, ids)
    index.nprobe = 4
    written = index.write(tmp_path / "i")
    opened = AnnIndex.open(tmp_path / "i", written, n_vectors=500, width=WIDTH, nprobe=4)
    ids_before, similarities_before = index.search(rows[:9], 5)
    ids_now, similarities_now = opened.search(rows[:9], 5)
    assert np.array_equal(ids_now, ids_before)
    assert np.array_equal(similarities_now, similarities_before)


def test_a_damaged_file_is_refused_before_faiss_parses_it(
    rows: Vectors, ids: Ids, tmp_path: Path, flip_byte: Callable[[Path, int], None]
) -> None:
    path = tmp_path / "i"
    written = build("Flat", rows, ids).write(path)
    for at in range(0, written.size_bytes, 997):
        flip_byte(path, at)
        with pytest.raises(IndexDamaged, match="has checksum"):
            AnnIndex.open(path, written, n_vectors=500, width=WIDTH, nprobe=0)
        flip_byte(path, at)


def test_a_file_that_is_not_a_faiss_index_is_damage_even_with_its_checksum(tmp_path: Path) -> None:
    from engine.store.durable import checksum

    path = tmp_path / "i"
    path.write_bytes(b"no index at all")
    with pytest.raises(IndexDamaged, match="is no FAISS index"):
        AnnIndex.open(path, checksum(path), n_vectors=500, width=WIDTH, nprobe=0)


def test_another_count_or_width_is_damage(rows: Vectors, ids: Ids, tmp_path: Path) -> None:
    written: Checksum = build("Flat", rows, ids).write(tmp_path / "i")
    with pytest.raises(IndexDamaged) as raised:
        AnnIndex.open(tmp_path / "i", written, n_vectors=499, width=WIDTH, nprobe=0)
    assert str(raised.value) == (
        f"{tmp_path / 'i'} holds 500 vectors 16 wide, not 499 vectors 16 wide; repair it: longmatch upkeep repair INDEX"
    )


@pytest.mark.parametrize(
    ("factory", "reason"),
    [
        ("Flatt", "it does not know this string"),
        ("", "it does not know this string"),
        ("IVF99999999999999,Flat", "a number in it is too large"),
        ("IVF1000,Flat", "Number of training points (500) should be at least as large as number of clusters (1000)"),
        ("IVF8,PQ7", "The dimension of the vector (d) should be a multiple of the number of subquantizers (M)"),
        ("IVF8,Flat,Refine(Flat)", "add_with_ids not implemented for this type of index"),
    ],
)
def test_a_factory_that_faiss_cannot_build_is_a_mismatch(rows: Vectors, ids: Ids, factory: str, reason: str) -> None:
    with pytest.raises(IndexMismatch) as raised:
        build(factory, rows, ids)
    over = "500 training vectors" if "1000" in reason or "add" in reason else "vectors"
    assert str(raised.value) == (
        f"FAISS cannot build factory {factory!r} over {over} 16 wide ({reason}); "
        "use --factory auto, Flat, SQ8, or IVF1024,PQ64x4fs"
    )


@pytest.mark.parametrize(
    ("n_vectors", "width", "factory"),
    [
        (0, 384, "Flat"),
        (50_000, 384, "Flat"),
        (50_001, 384, "IVF512,PQ192x4fs"),
        (250_000, 384, "IVF1024,PQ192x4fs"),
        (1_000_000, 384, "IVF4096,PQ192x4fs"),
        (1_000_000, 7, "IVF4096,PQ1x4fs"),
    ],
)
def test_auto_searches_few_vectors_exactly_and_many_by_lists(n_vectors: int, width: int, factory: str) -> None:
    assert factory_for(n_vectors, width) == factory


@pytest.mark.parametrize(
    ("factory", "size"),
    [
        ("IVF1024,PQ64x4fs", 65_536),
        ("OPQ16,IVF4096,Flat", 262_144),
        ("IVF1024_HNSW32,Flat", 65_536),
        ("SQ8", 65_536),
        ("Flat", 0),
        ("IDMap2,Flat", 0),
        ("SQfp16", 0),
    ],
)
def test_training_takes_64_vectors_a_list_and_none_where_nothing_is_learned(factory: str, size: int) -> None:
    assert training_size(factory) == size


@pytest.mark.parametrize("factory", ["Flat", "SQfp16", "SQ8", "IVF8,PQ8x4fs"])
def test_the_estimated_size_is_that_of_the_file(rows: Vectors, ids: Ids, factory: str, tmp_path: Path) -> None:
    written = build(factory, rows, ids).write(tmp_path / "i")
    assert index_bytes(factory, 500, WIDTH) == pytest.approx(written.size_bytes, rel=0.15, abs=2_000)


def test_a_full_disk_is_named_and_leaves_no_index(rows: Vectors, ids: Ids, tmp_path: Path) -> None:
    (tmp_path / "i.tmp").symlink_to("/dev/full")
    with pytest.raises(BudgetExceeded, match=r"/i: No space left on device; free some space"):
        build("IVF8,PQ8x4fs", rows, ids).write(tmp_path / "i")
    assert not (tmp_path / "i").exists()


def test_float16_codes_are_exact_and_a_search_for_more_than_all_gives_all(rows: Vectors, ids: Ids) -> None:
    stored = rows.astype(np.float16).astype(np.float32)
    flat, half = (build(factory, stored, ids).search(rows[:40], 10) for factory in ("Flat", "SQfp16"))
    assert np.array_equal(half[0], flat[0])
    np.testing.assert_allclose(half[1], flat[1], atol=1e-6)
    assert sorted(build("Flat", rows, ids).search(rows[:1], 10_000)[0][0].tolist()) == ids.tolist()


@pytest.mark.parametrize(
    ("factory", "expected"),
    [("Flat", True), ("IDMap2,Flat", True), ("SQfp16", True), ("SQ8", False), ("IVF8,Flat", False)],
)
def test_factories_that_compare_all_vectors_in_full_are_exact(factory: str, expected: bool) -> None:
    assert is_exact_factory(factory) is expected


@pytest.mark.parametrize("factory", ["Flat", "SQ8", "IVF8,PQ8x4fs", "HNSW16"])
def test_an_index_whose_size_was_known_gives_the_same_results(rows: Vectors, ids: Ids, factory: str) -> None:
    halves = [(ids[:200], rows[:200]), (ids[200:], rows[200:])]
    known = AnnIndex.build(factory, WIDTH, lambda: rows, halves, n_vectors=500)
    assert known.n_vectors == 500
    assert np.array_equal(known.search(rows[:20], 5)[0], build(factory, rows, ids).search(rows[:20], 5)[0])


CAN_FILTER = ["Flat", "SQfp16", "SQ8", "IVF8,Flat", "IVF8,PQ8x4fs", "RR16,IVF8,Flat", "IVF8,RaBitQ"]


@pytest.mark.parametrize("factory", CAN_FILTER)
def test_vectors_that_are_not_allowed_are_not_found(rows: Vectors, ids: Ids, factory: str) -> None:
    index = build(factory, rows, ids)
    assert index.can_filter
    allowed = np.zeros(ids[300] + 1, bool)
    allowed[ids[:301:10]] = True
    found, _ = index.search(rows[:9], 40, allowed=allowed, nprobe=8)
    expected = [*ids[:301:10].tolist(), *[-1] * 9]
    assert [sorted(row, key=lambda one: (one < 0, one)) for row in found.tolist()] == [expected] * 9


@pytest.mark.parametrize("factory", ["HNSW16", "PQ8x4fs"])
def test_types_that_cannot_filter_are_marked(rows: Vectors, ids: Ids, factory: str) -> None:
    assert not build(factory, rows, ids).can_filter


def test_other_lists_may_be_looked_into_than_usual(rows: Vectors, ids: Ids) -> None:
    index = build("IVF8,Flat", rows, ids)
    assert index.n_lists == 8
    index.nprobe = 1
    assert (index.search(rows[:9], 500)[0] < 0).any()
    assert not (index.search(rows[:9], 500, nprobe=8)[0] < 0).any()
    assert not (index.search(rows[:9], 500, nprobe=800)[0] < 0).any()


@pytest.mark.parametrize("factory", ["Flat", "SQ8", "IVF8,Flat", "IVF8,PQ8x4fs", "RR16,IVF8,Flat"])
def test_vectors_are_added_to_an_index_read_into_memory(rows: Vectors, ids: Ids, factory: str, tmp_path: Path) -> None:
    trained = AnnIndex.build(factory, WIDTH, lambda: rows, [(ids[:200], rows[:200])])
    written = trained.write(tmp_path / "i")
    grown = AnnIndex.open(tmp_path / "i", written, n_vectors=200, width=WIDTH, nprobe=8, is_mapped=False)
    grown.add([(ids[200:350], rows[200:350]), (ids[350:], rows[350:])])
    trained.add([(ids[200:], rows[200:])])
    at_once = build(factory, rows, ids)
    trained.nprobe = at_once.nprobe = 8
    assert grown.n_vectors == 500
    assert np.array_equal(grown.search(rows[:20], 5)[0], trained.search(rows[:20], 5)[0])
    assert np.array_equal(grown.search(rows[:20], 5)[0], at_once.search(rows[:20], 5)[0])


@pytest.fixture
def tables(corpus: list[Document]) -> WordTables:
    return count_words(WordSegmenter("english"), [document.text for document in corpus])


def built(tables: WordTables, step: int = 7, block_documents: int = BLOCK_DOCUMENTS) -> Postings:
    parts = [np.arange(first, min(first + step, 60)) for first in range(0, 60, step)]
    blocks = [tables.of(part) for part in parts]
    return Postings.build(np.arange(60) + 5, lambda: blocks, collect([tables]), block_documents)


def by_hand(query: QueryTerms, table: TermTable, statistics: TermStatistics, blocks: list[int]) -> list[float]:
    """The sum of the weights that are kept, one term at a time; a block is that of each document."""
    lengths, kept = table.lengths(), []
    for row, term, count in zip(table.rows().tolist(), table.terms.tolist(), table.counts.tolist(), strict=True):
        p = float(statistics.probabilities(np.array([term], np.uint32))[0])
        kept.append((row, term, round(255 * (math.log(1 + ALPHA * count / (lengths[row] * p)) / 16) ** 0.5) ** 2))
    least, left_out = 0, 0
    for size in sorted({weight for _, _, weight in kept}):
        left_out += sum(weight for _, _, weight in kept if weight == size)
        if left_out > LEFT_OUT * sum(weight for _, _, weight in kept):
            break
        least = size
    assert least > 0
    most = round(255 * (MOST_LEFT_OUT / 16) ** 0.5) ** 2
    kept = [one for one in kept if one[2] > least or one[2] >= most]
    in_documents = Counter((blocks[row], term) for row, term, _ in kept)
    weights = dict(zip(query.terms.tolist(), query.weights.tolist(), strict=True))
    sums = [0.0] * table.n_documents
    for row, term, weight in kept:
        sums[row] += weights.get(term, 0.0) * weight * 16 / 255**2 * (in_documents[blocks[row], term] > 1)
    return sums


@pytest.mark.parametrize("kind", ["words", "pairs"])
@pytest.mark.parametrize("number", [0, 31, 59])
def test_estimates_are_the_sums_of_kept_weights(tables: WordTables, kind: str, number: int) -> None:
    statistics, mine = collect([tables]), tables.of(np.array([number]))
    words, pairs = query_terms(mine.words, statistics.words), query_terms(mine.pairs, statistics.pairs)
    found = dict(zip(("words", "pairs"), built(tables).scores(words, pairs), strict=True))[kind]
    query = words if kind == "words" else pairs
    expected = by_hand(query, getattr(tables, kind), getattr(statistics, kind), [0] * 60)
    assert np.count_nonzero(expected) > 1
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("size", [59, 30, 16])
def test_blocks_give_the_same_estimates_for_terms_that_two_of_their_documents_have(
    tables: WordTables, size: int
) -> None:
    statistics = collect([tables])
    postings = built(tables, 7, size)
    assert len(postings.words) == -(-60 // size)
    mine = tables.of(np.array([3]))
    query = query_terms(mine.words, statistics.words), query_terms(mine.pairs, statistics.pairs)
    for found, kind, terms in zip(postings.scores(*query), ("words", "pairs"), query, strict=True):
        blocks = [number // size for number in range(60)]
        expected = by_hand(terms, getattr(tables, kind), getattr(statistics, kind), blocks)
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_term_of_one_document_is_not_kept_and_the_division_into_parts_changes_nothing(tables: WordTables) -> None:
    words = built(tables).words[0]
    assert (np.diff(words.starts.astype(np.int64)) >= 2).all()
    assert set(words.terms.tolist()) < set(tables.words.terms.tolist())
    one, other = built(tables, 60), built(tables, 11)
    for kind in ("words", "pairs"):
        for column in ("terms", "starts", "documents", "weights"):
            mine, theirs = (getattr(getattr(postings, kind)[0], column) for postings in (one, other))
            assert mine.tolist() == theirs.tolist()


def test_postings_come_back_from_their_file(tables: WordTables, tmp_path: Path) -> None:
    postings = built(tables, 7, 25)
    written = postings.write(tmp_path / "p")
    opened = Postings.open(tmp_path / "p", written)
    assert opened.ids.tolist() == postings.ids.tolist()
    assert opened.block_documents == 25
    for mine, theirs in zip((*opened.words, *opened.pairs), (*postings.words, *postings.pairs), strict=True):
        assert np.array_equal(mine.documents, theirs.documents)
        assert np.array_equal(mine.weights, theirs.weights)
    with pytest.raises(IndexDamaged, match="has checksum"):
        Postings.open(tmp_path / "p", Checksum(written.size_bytes, "0" * 32))


def test_an_empty_query_and_an_empty_corpus_score_nothing(tables: WordTables) -> None:
    statistics = collect([tables])
    nothing = count_words(WordSegmenter("english"), ["", ""])
    of_nothing = nothing.of(np.array([0]))
    empty_query = query_terms(of_nothing.words, statistics.words), query_terms(of_nothing.pairs, statistics.pairs)
    assert not any(found.any() for found in built(tables).scores(*empty_query))
    empty = Postings.build(np.arange(2), lambda: [nothing], statistics)
    mine = tables.of(np.array([0]))
    some = query_terms(mine.words, statistics.words), query_terms(mine.pairs, statistics.pairs)
    assert [found.tolist() for found in empty.scores(*some)] == [[0.0, 0.0], [0.0, 0.0]]
