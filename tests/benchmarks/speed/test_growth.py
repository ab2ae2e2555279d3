from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.isolation import Memory
from benchmarks.runs import read_runs
from benchmarks.speed import growth
from benchmarks.speed.growth import (
    COPY_MARK,
    Source,
    draw_names,
    exact_answers,
    grow,
    made_documents,
    main,
    principal_directions,
    turned,
)
from engine.errors import IndexMismatch
from engine.index import Index
from engine.search.request import Request
from engine.store.snapshot import IndexSnapshot
from indexer.upkeep.verify import verify
from tests.benchmarks.conftest import run_here
from tests.benchmarks.made_runs import run_program


@pytest.fixture
def source(real_folder: Path) -> Iterator[Source]:
    with IndexSnapshot(real_folder) as snapshot:
        yield Source(snapshot, 0)


def chunks_of(source: Source, n_chunks: int, first: int = 0, block_chunks: int = 10_000) -> np.ndarray:
    originals, copies = source.order(n_chunks)
    return np.concatenate([block.chunks for block in source.blocks(originals[first:], copies[first:], block_chunks)])


def test_first_come_the_real_documents_themselves_and_no_document_too_many(source: Source) -> None:
    n_real = int(source.n_chunks.sum())
    originals, copies = source.order(n_real + 1)
    assert copies.tolist() == [0] * 240 + [1]
    assert sorted(originals[:240].tolist()) == list(range(240)) != originals[:240].tolist()
    np.testing.assert_array_equal(chunks_of(source, n_real), source.read(originals[:240]).chunks)


def test_a_stream_does_not_depend_on_its_blocks_or_on_where_it_is_resumed(source: Source) -> None:
    n_chunks = 2 * int(source.n_chunks.sum())
    expected = chunks_of(source, n_chunks)
    np.testing.assert_allclose(chunks_of(source, n_chunks, block_chunks=50), expected, atol=1e-6)
    n_first = int(source.n_chunks[source.order(n_chunks)[0][:300]].sum())
    np.testing.assert_allclose(chunks_of(source, n_chunks, first=300), expected[n_first:], atol=1e-6)


def test_a_turn_keeps_lengths_and_cosines_and_moves_the_rows(source: Source) -> None:
    rows, basis = source.read(np.arange(20)).chunks, principal_directions(source)
    moved = turned(rows, basis, np.full((len(basis) - 1) // 2, 0.7))
    np.testing.assert_allclose(moved @ moved.T, rows @ rows.T, atol=1e-5)
    assert (rows * moved).sum(axis=1).max() < 0.99


def test_made_documents_have_the_sections_and_tokens_of_their_originals(source: Source) -> None:
    n_chunks = 2 * int(source.n_chunks.sum())
    *_, block = source.blocks(*source.order(n_chunks))
    document, encoded = next(made_documents(block, source.names))
    row = int(block.originals[0])
    assert document.doc_id == f"{source.names[row]}{COPY_MARK}1"
    assert len(document.sections) == source.snapshot.locations.n_sections[row]
    spans = [(chunk.section, chunk.n_tokens) for chunk in encoded.chunk_spans]
    assert spans == [tuple(span) for span in source.snapshot.spans(row)[:, [0, 3]].tolist()]
    assert {document.text[chunk.start : chunk.stop] for chunk in encoded.chunk_spans} == {"word"}


def test_a_grown_index_is_an_ordinary_one_and_grows_further(real_folder: Path, tmp_path: Path) -> None:
    folder, n_real = tmp_path / "grown.lm", 240
    grow(real_folder, folder, 1_500, 0)
    assert grow(real_folder, folder, 1_500, 0)["n_added"] == 0 < grow(real_folder, folder, 2_500, 0)["n_added"]
    assert verify(folder) == []
    with Index.open(folder) as index:
        assert index.n_chunks >= 2_500 and index.n_documents > n_real
    with pytest.raises(IndexMismatch, match="name sizes from small to large"):
        grow(real_folder, folder, 1_500, 0)
    with pytest.raises(IndexMismatch, match="was itself grown"):
        grow(folder, tmp_path / "again.lm", 5_000, 0)


def test_queries_have_the_requested_number_of_chunks(real_folder: Path) -> None:
    with IndexSnapshot(real_folder) as snapshot:
        drawn = draw_names(snapshot, 4, 6, seed=0)
        assert list(drawn) == ["real"] and drawn == draw_names(snapshot, 4, 6, seed=0)
        rows = [snapshot.position(name) for name in drawn["real"]]
        assert snapshot.locations.n_chunks[rows].tolist() == [6] * 4


def test_exact_answers_are_those_of_exact_searches(real_folder: Path) -> None:
    answers = exact_answers(real_folder, 3, 6, 0, 4)
    assert len(answers["names"]["real"]) == len(answers["targets"]) == 3
    with Index.open(real_folder) as index:
        for name, targets in answers["targets"].items():
            assert targets == [hit.doc_id for hit in index.search(name, Request(k=4, exact=True)).hits]


@pytest.mark.slow
def test_an_index_is_grown_and_searched(real_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    caps: dict[str, int | None] = {}

    def capped(target: Callable[..., Any], *arguments: object, **given: Any) -> tuple[Any, Memory]:  # noqa: ANN401
        caps[target.__name__] = given.get("cap_bytes")
        return run_here(target, *arguments)

    monkeypatch.setattr(growth, "run_fresh", capped)
    options = ["--chunks", "2500", "--queries", "3", "--cap", "4GiB"]
    run_program(main, real_folder, *options, "--work", tmp_path / "work", "--out", tmp_path / "out")
    (run,) = read_runs(tmp_path / "out")
    assert [case.id.rpartition(", ")[2] for case in run.cases] == ["real queries", "synthetic queries"]
    for case in run.cases:
        assert (case.values["queries"], case.values["recall"]) == (3, 1)
        assert 0 < case.values["p50, ms"] <= case.values["p99, ms"] and case.values["memory searching, MiB"] == 80
    assert {name for name, cap in caps.items() if cap == 4 << 30} == {"grow", "publish", "latency", "throughput"}
