"""The reference: drawn the same on every machine, pinned, checked, and never changed silently."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import engine.store.reference as reference_module
from engine.errors import IndexDamaged
from engine.index import Index
from engine.search.request import Request
from engine.store.reference import is_outgrown, sample_order, sample_size
from engine.store.snapshot import IndexSnapshot
from engine.store.writer import Writer
from engine.text.document import Document
from indexer.building.builder import build
from indexer.generation.reference import rebase
from indexer.upkeep.repair import repair
from indexer.upkeep.verify import Damage, verify
from tests.fakes import FakeEncoder, make_corpus, make_document
from tests.store.written import ENCODER, commit


@pytest.fixture
def folder(tmp_path: Path, corpus: list[Document]) -> Path:
    build(tmp_path / "x.lm", corpus, encoder=FakeEncoder())
    return tmp_path / "x.lm"


def scores(folder: Path) -> dict[str, float]:
    with Index.open(folder, encoder=FakeEncoder()) as index:
        return {hit.doc_id: hit.score for hit in index.search("doc003", Request(k=100)).hits}


def test_a_sample_is_drawn_by_names_alone() -> None:
    names = [f"doc{number}" for number in range(100)]
    order = [names[at] for at in sample_order(names)]
    again = [names[::-1][at] for at in sample_order(names[::-1])]
    assert order == again != names


@pytest.mark.parametrize(
    ("n", "chunks", "size"), [(10, 5, 10), (1_000, 5, 400), (1_000, 200, 200), (1_000, 9_000, 100)]
)
def test_a_sample_is_bounded_in_documents_and_chunks(n: int, chunks: int, size: int) -> None:
    assert sample_size(np.full(n, chunks)) == size


@pytest.mark.parametrize(("drawn", "now", "is_so"), [(75, 299, False), (75, 300, True), (0, 1, False), (0, 4, True)])
def test_a_reference_is_outgrown_at_four_times_the_documents(drawn: int, now: int, is_so: bool) -> None:
    assert is_outgrown(drawn, now) is is_so


def test_a_pinned_reference_is_read_as_it_was_drawn(folder: Path) -> None:
    with IndexSnapshot(folder) as snapshot:
        pinned, drawn = snapshot.reference, snapshot.draw_reference(1)
        for name in ("version", "n_corpus", "n_documents"):
            assert getattr(pinned, name) == getattr(drawn, name)
        for name in ("hashes", "vectors", "starts"):
            assert np.array_equal(getattr(pinned, name), getattr(drawn, name)), name
        for kind in ("words", "pairs"):
            mine, theirs = getattr(pinned.statistics, kind), getattr(drawn.statistics, kind)
            assert np.array_equal(mine.terms, theirs.terms) and np.array_equal(mine.counts, theirs.counts)
            assert mine.total == theirs.total


def test_until_one_is_pinned_a_reference_is_drawn_for_each_search(tmp_path: Path, corpus: list[Document]) -> None:
    with Writer(tmp_path / "x.lm") as writer:
        writer.claim(ENCODER)
        commit(writer, *corpus)
    before = scores(tmp_path / "x.lm")
    with IndexSnapshot(tmp_path / "x.lm") as snapshot:
        assert snapshot.reference.version == 0
    assert rebase(tmp_path / "x.lm").version == 1
    assert scores(tmp_path / "x.lm") == before


def test_removed_and_changed_documents_stay_in_the_reference(folder: Path, corpus: list[Document]) -> None:
    before = scores(folder)
    with Writer(folder) as writer:
        writer.remove([there.id for there in writer.indexed(["doc010", "doc011"]).values()])
        commit(writer, make_document("doc012", "quite other words than there were before"))
    after = scores(folder)
    kept = before.keys() & after.keys() - {"doc012"}
    assert len(kept) > 10 and all(after[name] == before[name] for name in kept)


def test_a_run_over_an_outgrown_reference_logs_that_scores_change(folder: Path) -> None:
    lines: list[str] = []
    grown = make_corpus(240, seed=0)
    build(folder, grown, encoder=FakeEncoder(), log=lines.append)
    assert lines[0] == (
        "240 documents are 4 times the 60 that the reference was drawn from: drawing another one, so scores differ "
        "from those before"
    )
    assert lines[1].startswith("reference 2: 240 of 240 documents, ")
    with IndexSnapshot(folder) as snapshot:
        assert snapshot.reference.version == 2


def test_an_open_index_keeps_its_reference_while_another_is_pinned(folder: Path) -> None:
    before = scores(folder)
    with Index.open(folder, encoder=FakeEncoder()) as index:
        rebase(folder)
        assert {hit.doc_id: hit.score for hit in index.search("doc003", Request(k=100)).hits} == before
        assert index.snapshot.reference.version == 1
    assert [file.name for file in (folder / "reference").iterdir()] == ["000002.safetensors"]


@pytest.mark.slow
@pytest.mark.parametrize("at", [0, 9, 5_000, -1])
def test_a_damaged_reference_is_refused_and_another_one_drawn(
    folder: Path, flip_byte: Callable[[Path, int], None], at: int
) -> None:
    before = scores(folder)
    flip_byte(folder / "reference" / "000001.safetensors", at)
    with pytest.raises(IndexDamaged, match=r"000001\.safetensors has checksum"):
        scores(folder)
    assert [finding.damage for finding in verify(folder)] == [Damage.REFERENCE]
    assert repair(folder).mended == [
        "reference/000001.safetensors: another reference was drawn, so scores differ from those before"
    ]
    assert verify(folder) == []
    assert scores(folder) == before  # of the same documents
    with IndexSnapshot(folder) as snapshot:
        assert snapshot.reference.version == 2


def test_a_query_is_left_out_of_its_own_reference(folder: Path, corpus: list[Document]) -> None:
    """A document and a file of the same content have the same thresholds."""
    with Index.open(folder, encoder=FakeEncoder()) as index:
        searcher = index.searcher()
        by_id = searcher.prepare(index.stored_query("doc003")).limits
        query = index.stored_query("doc003")
        by_file = searcher.prepare(replace(query, key=None, words=None)).limits
        stranger = searcher.prepare(replace(query, key=0)).limits
    assert by_id.chunks.tolist() == by_file.chunks.tolist()
    assert (stranger.chunks >= by_id.chunks).all() and (stranger.chunks > by_id.chunks).any()


def test_an_index_smaller_than_the_fewest_is_its_own_reference(
    tmp_path: Path, corpus: list[Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reference_module, "FEWEST_DOCUMENTS", 2)
    build(tmp_path / "x.lm", corpus[:1], encoder=FakeEncoder())
    with IndexSnapshot(tmp_path / "x.lm") as snapshot:
        assert snapshot.reference.n_documents == 1
