"""Indexes of earlier versions can be searched, and the next run upgrades them without encoding."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import engine.search.query as query_module
import engine.store.snapshot as snapshot_module
import engine.store.writable as writable_module
import engine.store.writer as writer_module
import engine.words.counts as counts_module
from engine.index import Index
from engine.store.catalog import SCHEMA_VERSION
from engine.store.seal import write_seal
from engine.store.snapshot import Snapshot
from engine.store.writer import Writer
from engine.text.document import Document
from indexer.building.builder import build
from indexer.generation.new_generation import publish_generation
from indexer.generation.upgrade import upgrade_kinds, upgrade_titles
from indexer.upkeep.repair import repair
from indexer.upkeep.verify import Damage, verify
from tests.fakes import FakeEncoder, make_corpus, make_document
from tests.store.written import ENCODER, commit


def scores(folder: Path) -> dict[str, float]:
    with Index.open(folder, encoder=FakeEncoder()) as index:
        return {hit.doc_id: hit.score for hit in index.search_id("doc003", k=100).hits}


@pytest.mark.slow
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
    logged: list[str] = []
    build(old, corpus, encoder=encoder, log=logged.append, recall_floor=0.0)
    assert encoder.encoded == [] and logged[0] == "adding words to 2 shards of an earlier version (language none)"
    assert logged[1] == "counting words of titles in 2 shards of an earlier version: scores change with it"
    assert verify(old) == []
    with Snapshot(old) as snapshot:
        assert snapshot.language == "none" and snapshot.generation is not None
        assert snapshot.generation.postings is not None
    assert scores(old) == scores(new)


def titled_corpus() -> list[Document]:
    """Documents whose titles stand in their texts; topics of the titles are not those of the texts."""
    corpus = make_corpus(60)
    titles = [" ".join(corpus[number - 7].text.split()[3:7]) for number in range(60)]
    return [
        make_document(one.doc_id, [("", f"{title}\n\n{one.text}"), ("Appendix A", one.text[:150])], title=title)
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
        catalog.execute("DELETE FROM meta WHERE key IN ('counts_titles', 'section_kinds')")
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


@pytest.mark.slow
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
    with Writer(of_schema_3):  # a writer deletes leftovers when it opens
        assert sorted((of_schema_3 / "shards").iterdir()) == files


@pytest.fixture
def of_schema_4(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An index in which nothing is counted apart by kind of section, with a generation and its postings."""
    folder = tmp_path / "old.lm"
    with monkeypatch.context() as patch:
        patch.setattr(counts_module, "_counted_apart", lambda *_: None)
        patch.setattr(writer_module, "_COUNTED", {"counts_titles": True})
        patch.setattr(writable_module, "SCHEMA_VERSION", 4)
        build(folder, titled_corpus(), encoder=FakeEncoder(), factory="IVF4,Flat", recall_floor=0.0)
    with Snapshot(folder) as snapshot:
        assert snapshot.meta["schema_version"] == 4 and "section_kinds" not in snapshot.meta
    return folder


def skipping_scores(folder: Path, *kinds: str) -> list[list[tuple[str, float]]]:
    with Index.open(folder) as index:
        results = [index.search_id(f"doc{number:03d}", k=20, skip=kinds or ["appendix"]) for number in (3, 14, 55)]
        return [[(hit.doc_id, hit.score) for hit in result.hits] for result in results]


def has_apart(folder: Path) -> bool:
    with Snapshot(folder) as snapshot:
        return snapshot.knows_kinds and all(
            (words := snapshot.shard(row.id).words) is not None and words.apart is not None
            for row in snapshot.shard_rows
        )


@pytest.mark.slow
@pytest.mark.parametrize("by", ["index", "repair", "rules"])
def test_kinds_are_counted_by_the_next_run_without_encoding(
    tmp_path: Path, of_schema_4: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    new = tmp_path / "new.lm"
    build(new, titled_corpus(), encoder=FakeEncoder(), factory="IVF4,Flat", recall_floor=0.0)
    plain, skipping, encoder = scores(new), skipping_scores(new), FakeEncoder()
    assert skipping_scores(new, "references") != skipping  # there are none
    assert has_apart(new) and not has_apart(of_schema_4)
    assert scores(of_schema_4) == plain and skipping_scores(of_schema_4) == skipping  # by the texts
    if by == "repair":
        repair(of_schema_4)
    else:
        build(of_schema_4, titled_corpus(), encoder=encoder, factory="IVF4,Flat", recall_floor=0.0)
    if by == "rules":  # a later version finds other kinds, and counts all shards again
        for module in (snapshot_module, writer_module):
            monkeypatch.setattr(module, "RULES", 2)
        monkeypatch.setattr(writer_module, "_COUNTED", {"counts_titles": True, "section_kinds": 2})
        assert not has_apart(of_schema_4) and skipping_scores(of_schema_4) == skipping
        repair(of_schema_4)
    assert encoder.encoded == [] and verify(of_schema_4) == []
    assert has_apart(of_schema_4)
    assert scores(of_schema_4) == plain and skipping_scores(of_schema_4) == skipping
    with Snapshot(of_schema_4) as snapshot:
        assert snapshot.meta["schema_version"] == SCHEMA_VERSION
        assert snapshot.reference.version == 1  # scores without skipped kinds stay
        assert snapshot.generation is not None and snapshot.generation.postings is not None


def test_counting_of_kinds_continues_where_it_was_stopped(of_schema_4: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, skipping = scores(of_schema_4), skipping_scores(of_schema_4)
    with monkeypatch.context() as patch:
        patch.setattr(Writer, "record_kinds", _fail)
        with Writer(of_schema_4) as writer, pytest.raises(KeyboardInterrupt):
            upgrade_kinds(writer, lambda _: None)
    assert not has_apart(of_schema_4)
    assert scores(of_schema_4) == plain and skipping_scores(of_schema_4) == skipping
    lines: list[str] = []
    with Writer(of_schema_4) as writer:
        upgrade_kinds(writer, lines.append)
        upgrade_kinds(writer, lines.append)
    assert lines == [] and has_apart(of_schema_4)  # all shards had been counted


def _fail(*_: object) -> None:
    raise KeyboardInterrupt
