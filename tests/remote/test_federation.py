"""Partitions behind servers give the results of one index; those that fail are an error, or left out and counted."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import longmatch
from benchmarks.partitions.faults import Fault, Relay
from engine.errors import IndexMismatch, PartitionUnavailable, QueryError
from engine.index import Index
from engine.remote.exchange import Access
from engine.result import Status
from engine.store.address import index_place
from engine.store.manifest import read_manifest
from engine.text.document import Document
from engine.views import Result
from indexer.building.builder import build
from indexer.cli import main
from indexer.pairs.run import PairSettings, find_pairs
from indexer.partitions.connecting import connect
from indexer.partitions.splitting import partition
from tests.fakes import FakeEncoder, make_document
from tests.remote.servers import point_to, serving
from tests.search.test_partitioned_search import corpus

P = 3
KINDS = ["words", "vectors"]
BROKEN = [fault for fault in Fault if fault not in (Fault.NONE, Fault.NO_TOKEN, Fault.KILLED)]  # need no process
SECONDS = 0.6  # deadline of a round with a fault


@dataclass
class Spread:
    """One index, and the same in partitions of which the last is a local folder and the others are behind relays."""

    one: Index
    folder: Path
    relays: list[Relay]
    encoder: FakeEncoder | None

    def open(self, seconds: float = 60, *, is_partial: bool = False) -> Index:
        return Index.open(self.folder, encoder=self.encoder, access=Access(seconds, is_partial))


@pytest.fixture(scope="module", params=KINDS)
def spread(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Spread]:
    home = tmp_path_factory.mktemp("federation")
    is_words = request.param == "words"
    encoder = None if is_words else FakeEncoder()
    build(home / "one.lm", corpus(), encoder=FakeEncoder(), encode="none" if is_words else "all", factory="Flat")
    partition(home / "one.lm", home / "x.parts", P)
    with ExitStack() as opened:
        relays = []
        for number in range(P - 1):
            address = opened.enter_context(serving(home / "x.parts" / f"{number:04d}.lm"))
            relays.append(opened.enter_context(Relay(int(address.rpartition(":")[2]))))
        shutil.copytree(home / "x.parts", home / "net.parts")
        point_to(home / "net.parts", {number: (relay.address,) for number, relay in enumerate(relays)})
        one = opened.enter_context(Index.open(home / "one.lm", encoder=encoder))
        yield Spread(one, home / "net.parts", relays, encoder)


def answer(result: Result) -> dict[str, Any]:
    return {name: value for name, value in result.to_dict().items() if name not in ("seconds", "provenance")}


TEXT = make_document("q", "topic1word2 topic2word3 common1 " * 4)
QUERIES: list[str | Document] = ["doc003", "a-copy-of-doc006", TEXT]


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"k": 3, "offset": 7},
        {"k": 100, "where": "family = 'even'", "without": ["doc006"]},
        {"exact": True, "mode": "containment"},
        {"k": 4, "diversify": True, "min_pair": 0.01},
        {"where": "topic = 99"},
    ],
    ids=str,
)
@pytest.mark.parametrize("query", QUERIES, ids=["id", "copy", "text"])
def test_results_are_those_of_one_index(spread: Spread, query: str | Document, options: dict[str, Any]) -> None:
    def search(index: Index) -> Result:
        ranked = index.search_id if isinstance(query, str) else index.search
        return ranked(query, **options)  # type: ignore[arg-type]

    with spread.open() as index:
        found = search(index)
    assert answer(found) == answer(search(spread.one))
    assert found.status is Status.CERTIFIED


def test_documents_and_counts_are_those_of_one_index(spread: Spread) -> None:
    with spread.open() as index:
        assert index.document("doc004") == spread.one.document("doc004")
        assert index.copies(index.document("doc003")) == spread.one.copies(spread.one.document("doc003"))
        assert sorted(index.snapshot.titles()) == sorted(spread.one.snapshot.titles())
        assert index.n_documents == spread.one.n_documents and index.n_chunks == spread.one.n_chunks
        counts = ("documents", "encoded", "sections", "chunks", "tokens_read", "tokens_total", "failures")
        assert [index.facts[name] for name in counts] == [spread.one.facts[name] for name in counts]
        with pytest.raises(QueryError, match="no document 'doc00x'"):
            index.document("doc00x")
        with pytest.raises(QueryError, match="did you mean 'year'"):
            index.search_id("doc003", where="yeer = 2019")
        with pytest.raises(IndexMismatch, match="needs their files"):
            index.document_vectors()


@pytest.mark.slow
@pytest.mark.parametrize("query", ["doc003", TEXT], ids=["id", "text"])
def test_novelty_is_that_of_one_index(spread: Spread, query: str | Document) -> None:
    options: dict[str, Any] = {"where": "topic in (1, 2, 3)", "without": ["doc007"]}
    with spread.open() as index:
        for given in ({}, options):
            found, expected = (one.novelty(query, **given).to_dict(n_pairs=5) for one in (index, spread.one))
            for one in (found, expected):
                one.pop("seconds"), one.pop("provenance")
            assert found == expected
            assert any(section["hit"] for section in found["sections"])


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["similar", "containment"])
def test_pairs_are_those_of_one_index(spread: Spread, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("indexer.pairs.run.BLOCK_DOCUMENTS", 7)
    settings = PairSettings(0.2, 4, mode, "family = 'even'")
    with spread.open() as index:
        found, expected = (find_pairs(one, settings) for one in (index, spread.one))
    assert found.pairs == expected.pairs and len(found.pairs) > 3
    assert (found.n_documents, found.is_certified) == (expected.n_documents, True)


def test_novelty_and_pairs_need_all_partitions(spread: Spread) -> None:
    spread.relays[1].spoil(Fault.REFUSED)
    with spread.open(SECONDS, is_partial=True) as index:
        for search in (lambda: index.novelty(TEXT), lambda: find_pairs(index, PairSettings())):
            with pytest.raises(PartitionUnavailable, match="partition 1 at"):
                search()
    spread.relays[1].spoil(Fault.NONE)


@pytest.mark.slow
@pytest.mark.parametrize("spread", ["words"], indirect=True)
@pytest.mark.parametrize("fault", BROKEN)
@pytest.mark.parametrize("after", [0, 1, 2])
def test_a_partition_that_fails_is_named_in_the_error_or_left_out(spread: Spread, fault: Fault, after: int) -> None:
    """The fault comes at the first, the second or the third of the requests describe, rank and show."""
    for is_partial in (False, True):
        spread.relays[1].spoil(fault, after)
        began = time.monotonic()
        with spread.open(SECONDS, is_partial=is_partial) as index:
            if not is_partial:
                with pytest.raises(PartitionUnavailable, match=f"partition 1 at {spread.relays[1].address}"):
                    index.search(TEXT, k=30)
            else:
                found = index.search(TEXT, k=30)
                n_missing = read_manifest(spread.folder).partitions[1].n_documents
                assert (found.status, found.n_not_searched) == (Status.PARTIAL, n_missing)
                assert found.missing_partitions == (f"partition 1 at {spread.relays[1].address}",)
                assert found.n_searched == spread.one.n_documents - n_missing
                left = set(index.snapshot.parts[0].doc_ids()) | set(index.snapshot.parts[2].doc_ids())
                whole = [(hit.doc_id, hit.score) for hit in spread.one.search(TEXT, k=100)]
                assert [(hit.doc_id, hit.score) for hit in found] == [one for one in whole if one[0] in left][:30]
                assert "documents not searched" in str(found)
        assert time.monotonic() - began < 6 * SECONDS + 3
    spread.relays[1].spoil(Fault.NONE)


def test_no_partition_at_all_is_an_error(tmp_path: Path, spread: Spread) -> None:
    shutil.copytree(spread.folder, tmp_path / "x.parts")
    point_to(tmp_path / "x.parts", {number: (f"http://127.0.0.1:{number + 1}",) for number in range(P)})
    opened = Index.open(tmp_path / "x.parts", encoder=spread.encoder, access=Access(5, is_partial=True))
    with opened as index, pytest.raises(PartitionUnavailable, match=r"partition 0 at http.* does not answer"):
        index.search(TEXT)


@pytest.mark.slow
@pytest.mark.parametrize("spread", ["words"], indirect=True)
def test_a_replica_is_searched_where_a_partition_fails(tmp_path: Path, spread: Spread) -> None:
    shutil.copytree(spread.folder, tmp_path / "x.parts")
    relay = spread.relays[0]
    with Relay(relay.port) as replica:
        point_to(tmp_path / "x.parts", {0: (relay.address, replica.address)})
        for fault in BROKEN:
            relay.spoil(fault)
            with Index.open(tmp_path / "x.parts", encoder=spread.encoder, access=Access(2 * SECONDS)) as index:
                assert answer(index.search_id("doc003")) == answer(spread.one.search_id("doc003"))
        assert replica.n_requests >= len(BROKEN)
    relay.spoil(Fault.NONE)


def test_another_partition_at_an_address_is_not_searched(spread: Spread, tmp_path: Path) -> None:
    shutil.copytree(spread.folder, tmp_path / "x.parts")
    point_to(tmp_path / "x.parts", {0: (spread.relays[1].address,), 1: (spread.relays[0].address,)})
    refused = pytest.raises(PartitionUnavailable, match=r"is partition [01] of 3, not partition [01] of 3")
    with Index.open(tmp_path / "x.parts", encoder=spread.encoder) as index, refused:
        index.search_id("doc003")


@pytest.mark.slow
def test_an_open_index_follows_commits_to_a_served_partition(tmp_path: Path) -> None:
    build(tmp_path / "one.lm", corpus(), encode="none")
    partition(tmp_path / "one.lm", tmp_path / "x.parts", 2)
    with serving(tmp_path / "x.parts" / "0000.lm") as first, serving(tmp_path / "x.parts" / "0001.lm") as second:
        connect(tmp_path / "net", [second, first])
        with Index.open(tmp_path / "net") as net:
            before = net.search(make_document("q", "zyzzyva topic1word1"))
            added = make_document("new", "zyzzyva " * 9)
            build(tmp_path / "x.parts", [added], encode="none")
            deadline = time.monotonic() + 60
            while (after := net.search(make_document("q", "zyzzyva topic1word1")))[0].doc_id != "new":
                assert time.monotonic() < deadline
            assert after.n_searched == before.n_searched + 1
            assert [hit.score for hit in after if hit.doc_id != "new"][:5] == [hit.score for hit in before][:5]


@pytest.mark.slow
def test_connect_makes_an_index_for_commands(tmp_path: Path) -> None:
    build(tmp_path / "one.lm", corpus(), encode="none")
    partition(tmp_path / "one.lm", tmp_path / "x.parts", 2)

    def run(*arguments: object) -> str:
        result = CliRunner().invoke(main, [*map(str, arguments)])
        return result.stdout if result.exit_code == 0 else f"{result.exit_code} {result.stderr}{result.stdout}"

    with serving(tmp_path / "x.parts" / "0000.lm") as first, serving(tmp_path / "x.parts" / "0001.lm") as second:
        assert "no address holds partition 0 of 2" in run("connect", tmp_path / "net", second)
        connected = run("connect", tmp_path / "net", second, first, first)
        assert [line.rpartition(" at ")[2] for line in connected.splitlines()] == [f"{first} or {first}", second]
        query = ["--id", "doc003", "-k", "3", "--format", "csv"]
        assert run("query", tmp_path / "net", *query) == run("query", tmp_path / "one.lm", *query)
        assert "copy-of-doc033" in run(
            "query", first, "--text", "topic3word1 topic4word2", "-k", "60", "--format", "trec"
        )
        assert run("show", tmp_path / "net", "doc003") == run("show", tmp_path / "one.lm", "doc003")
        assert f"{len(corpus())} in" in run("info", tmp_path / "net") and second in run("info", tmp_path / "net")
        assert "documents" in run("info", first)
        assert "doc003" in run("chart", tmp_path / "net", "--id", "a-copy-of-doc003", "--format", "csv")
        for command in ("remove", "compact", "verify", "rebase", "index"):
            extra = ["doc003"] if command == "remove" else []
            assert "needs" in run(command, first, *extra) and "needs its files" in run(
                command, tmp_path / "net", *extra
            )
        with longmatch.open(first) as index:
            assert len(index) == read_manifest(tmp_path / "net").partitions[0].n_documents
    text = ["--text", "topic3word1 topic4word1", "--timeout", "5"]
    assert run("query", tmp_path / "net", *text).startswith("1 Error: partition 0 at ")
    assert "does not answer" in run("query", first, *text)


def test_addresses_are_paths_that_keep_their_slashes() -> None:
    assert str(index_place("http://127.0.0.1:8321")) == "http://127.0.0.1:8321"
    assert str(index_place(Path("https://host/name"))) == "https://host/name"
    for wrong in ("http://", "http://u:p@host", "http://host:x", "http://host?x=1"):
        with pytest.raises(IndexMismatch, match="is no address of a server"):
            index_place(wrong)
