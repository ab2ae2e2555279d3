"""The reference: drawn the same on every machine, pinned, checked, and never changed without a word."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import engine.search.query as query_module
import engine.store.reference as reference_module
import engine.store.writer as writer_module
import engine.words.counts as counts_module
from engine.document import Document
from engine.errors import IndexDamaged
from engine.index import Index
from engine.store.durable import checksum
from engine.store.reference import is_outgrown, open_reference, sample_order, sample_size, write_reference
from engine.store.seal import write_seal
from engine.store.snapshot import Snapshot
from engine.store.writer import Writer
from indexer.building.builder import build
from indexer.generation.new_generation import publish_generation
from indexer.generation.reference import rebase, upgrade_titles
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
        return {hit.doc_id: hit.score for hit in index.search_id("doc003", k=100).hits}


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
    with Snapshot(folder) as snapshot:
        pinned, drawn = snapshot.reference, snapshot.draw_reference(1)
        for name in ("version", "n_corpus", "n_documents"):
            assert getattr(pinned, name) == getattr(drawn, name)
        for name in ("hashes", "documents", "vectors", "starts"):
            assert np.array_equal(getattr(pinned, name), getattr(drawn, name)), name
        for kind in ("words", "pairs"):
            mine, theirs = getattr(pinned.statistics, kind), getattr(drawn.statistics, kind)
            assert np.array_equal(mine.terms, theirs.terms) and np.array_equal(mine.counts, theirs.counts)
            assert mine.total == theirs.total


def test_a_reference_of_an_earlier_version_is_read(folder: Path, tmp_path: Path) -> None:
    """Version 2 of the schema kept its rows in half precision."""
    with Snapshot(folder) as snapshot:
        rows, _ = snapshot.chunk_rows(np.arange(20))
        reference = replace(snapshot.reference, rows=rows)
        write_reference(tmp_path / "new", reference)
        tensors = {name: np.array(tensor) for name, tensor in load_file(tmp_path / "new").items()}
        del tensors["steps"], tensors["scales"]
        save_file({**tensors, "rows": rows}, tmp_path / "old")
    old = open_reference(tmp_path / "old", checksum(tmp_path / "old"))
    assert np.array_equal(old.vectors, rows.astype(np.float32))
    assert old.common.tolist() == reference.common.tolist()
    new = open_reference(tmp_path / "new", checksum(tmp_path / "new"))
    np.testing.assert_allclose(new.vectors, old.vectors, atol=float(np.abs(old.vectors).max()) / 200)


def test_until_one_is_pinned_a_reference_is_drawn_for_each_search(tmp_path: Path, corpus: list[Document]) -> None:
    with Writer(tmp_path / "x.lm") as writer:
        writer.claim(ENCODER)
        commit(writer, *corpus)
    before = scores(tmp_path / "x.lm")
    with Snapshot(tmp_path / "x.lm") as snapshot:
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


def test_a_run_over_an_outgrown_reference_says_that_scores_change(folder: Path) -> None:
    said: list[str] = []
    grown = make_corpus(240, seed=0)
    build(folder, grown, encoder=FakeEncoder(), log=said.append)
    assert said[0] == (
        "240 documents are 4 times the 60 that the reference was drawn from: drawing another one, so scores differ "
        "from those before"
    )
    assert said[1].startswith("reference 2: 240 of 240 documents, ")
    with Snapshot(folder) as snapshot:
        assert snapshot.reference.version == 2


def test_an_open_index_keeps_its_reference_while_another_is_pinned(folder: Path) -> None:
    before = scores(folder)
    with Index.open(folder, encoder=FakeEncoder()) as index:
        rebase(folder)
        assert {hit.doc_id: hit.score for hit in index.search_id("doc003", k=100).hits} == before
        assert index.snapshot.reference.version == 1
    assert [file.name for file in (folder / "reference").iterdir()] == ["000002.safetensors"]


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
    with Snapshot(folder) as snapshot:
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


def test_an_index_of_an_earlier_version_opens_and_is_upgraded_without_encoding(
    tmp_path: Path, corpus: list[Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    new = tmp_path / "new.lm"
    build(new, corpus, encoder=FakeEncoder())
    old = tmp_path / "old.lm"
    with monkeypatch.context() as patch:
        patch.setattr(Writer, "count_words", lambda *_: None)
        with Writer(old) as writer:
            writer.claim(ENCODER)
            commit(writer, *corpus[:30])
            commit(writer, *corpus[30:])
            publish_generation(writer, "IVF4,Flat", recall_floor=0.0)
    with closing(sqlite3.connect(old / "catalog.sqlite")) as catalog:
        catalog.execute("DROP TABLE reference")
        catalog.execute("DROP TABLE postings")
        catalog.execute("UPDATE meta SET value = '1' WHERE key = 'schema_version'")
        catalog.commit()
        catalog.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    write_seal(old / "catalog.sqlite")
    with Index.open(old, encoder=FakeEncoder()) as index:
        result = index.search_id("doc003")
        assert (result.language, result.reference) == (None, 0)
        assert result.hits and not result.hits[0].breakdown.terms
        assert result.hits[0].breakdown.score == pytest.approx(result.hits[0].score, abs=1e-6)
    encoder = FakeEncoder()
    said: list[str] = []
    build(old, corpus, encoder=encoder, log=said.append, recall_floor=0.0)
    assert encoder.encoded == [] and said[0] == "adding words to 2 shards of an earlier version (language none)"
    assert said[1] == "counting words of titles in 2 shards of an earlier version: scores change with it"
    assert verify(old) == []
    with Snapshot(old) as snapshot:
        assert snapshot.language == "none" and snapshot.generation is not None
        assert snapshot.generation.postings is not None
    assert scores(old) == scores(new)


def test_an_index_smaller_than_the_fewest_is_its_own_reference(
    tmp_path: Path, corpus: list[Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reference_module, "FEWEST_DOCUMENTS", 2)
    build(tmp_path / "x.lm", corpus[:1], encoder=FakeEncoder())
    with Snapshot(tmp_path / "x.lm") as snapshot:
        assert snapshot.reference.n_documents == 1


def titled_corpus() -> list[Document]:
    """Documents whose titles stand in their texts; topics of the titles are not those of the texts."""
    corpus = make_corpus(60)
    titles = [" ".join(corpus[number - 7].text.split()[3:7]) for number in range(60)]
    return [
        make_document(one.doc_id, f"{title}\n\n{one.text}", title=title)
        for one, title in zip(corpus, titles, strict=True)
    ]


@pytest.fixture
def of_schema_3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An index in which titles count like all other text, with a generation and its postings."""
    folder = tmp_path / "old.lm"
    with monkeypatch.context() as patch:
        patch.setattr(counts_module, "title_span", lambda _: None)
        patch.setattr(query_module, "title_span", lambda _: None)
        build(folder, titled_corpus(), encoder=FakeEncoder(), factory="IVF4,Flat", recall_floor=0.0)
    with closing(sqlite3.connect(folder / "catalog.sqlite")) as catalog:
        catalog.execute("DELETE FROM meta WHERE key = 'counts_titles'")
        catalog.execute("UPDATE meta SET value = '3' WHERE key = 'schema_version'")
        catalog.commit()
        catalog.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    write_seal(folder / "catalog.sqlite")
    return folder


def test_an_index_without_counted_titles_scores_a_file_like_its_own_copy(of_schema_3: Path) -> None:
    with Index.open(of_schema_3, encoder=FakeEncoder()) as index:
        document = titled_corpus()[3]
        by_file = {hit.doc_id: hit.score for hit in index.search(document, k=100).hits}
        by_id = {hit.doc_id: hit.score for hit in index.search_id("doc003", k=100).hits}
        assert {name: score for name, score in by_file.items() if name != document.doc_id} == by_id
        hit = index.search(document, k=1).hits[0]
        assert hit.breakdown.score == pytest.approx(hit.score, abs=1e-6)


@pytest.mark.parametrize("by", ["index", "repair"])
def test_titles_are_counted_by_the_next_run_without_encoding(tmp_path: Path, of_schema_3: Path, by: str) -> None:
    new = tmp_path / "new.lm"
    build(new, titled_corpus(), encoder=FakeEncoder(), factory="IVF4,Flat", recall_floor=0.0)
    before, encoder = scores(of_schema_3), FakeEncoder()
    with Snapshot(of_schema_3) as snapshot:
        assert not snapshot.counts_titles and snapshot.reference.version == 1
    if by == "index":
        build(of_schema_3, titled_corpus(), encoder=encoder, factory="IVF4,Flat", recall_floor=0.0)
    else:
        repair(of_schema_3)
    assert encoder.encoded == [] and verify(of_schema_3) == []
    with Snapshot(of_schema_3) as snapshot:
        assert snapshot.counts_titles and snapshot.reference.version == 2
        assert snapshot.generation is not None and snapshot.generation.postings is not None
    assert scores(of_schema_3) == scores(new) != before


def test_a_run_that_ends_while_titles_are_counted_leaves_the_index_as_it_was(
    of_schema_3: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, files = scores(of_schema_3), sorted((of_schema_3 / "shards").iterdir())
    with monkeypatch.context() as patch:
        patch.setattr(writer_module, "write_meta", _fail)
        with Writer(of_schema_3) as writer, pytest.raises(KeyboardInterrupt):
            upgrade_titles(writer, lambda _: None)
    assert scores(of_schema_3) == before
    assert {finding.damage for finding in verify(of_schema_3)} == {Damage.LEFTOVER}
    with Writer(of_schema_3):  # which deletes it
        assert sorted((of_schema_3 / "shards").iterdir()) == files


def _fail(*_: object) -> None:
    raise KeyboardInterrupt
