"""Partitions on servers, in PostgreSQL and in folders of another index give together the results of one index."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from engine.errors import IndexMismatch, PartitionUnavailable
from engine.index import Index
from engine.remote.exchange import Access
from engine.result import Status
from engine.store.address import Address
from engine.store.manifest import read_manifest
from engine.text.document import Document
from indexer.building.builder import build
from indexer.generation.reference import rebase
from indexer.pairs.run import PairSettings, find_pairs
from indexer.partitions.connecting import connect
from indexer.partitions.splitting import partition
from indexer.upkeep.verify import verify
from tests.fakes import FakeEncoder, make_document
from tests.postgres_server import new_address
from tests.remote.servers import point_to, serving
from tests.remote.test_federation import answer
from tests.search.test_partitioned_search import corpus

P = 3
TEXT = make_document("q", "topic1word2 topic2word3 common1 " * 4)


@dataclass
class Mixed:
    """One index, its partitions, and a manifest of a folder, a schema and a server."""

    one: Path
    parts: Path
    net: Path
    schema: Address


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("mixed")
    build(home / "one.lm", corpus(), encoder=FakeEncoder(), encode="all", factory="Flat")
    partition(home / "one.lm", home / "x.parts", P)
    return home


@pytest.fixture(scope="module")
def mixed(folders: Path) -> Iterator[Mixed]:
    parts, schema = folders / "x.parts", new_address()
    partition(parts / "0001.lm", schema, 1)
    with serving(parts / "0002.lm") as served:
        connect(folders / "x.net", [served, str(schema), str(parts / "0000.lm")])
        yield Mixed(folders / "one.lm", parts, folders / "x.net", schema)


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.parametrize("query", ["doc003", "a-copy-of-doc006", TEXT], ids=["id", "copy", "text"])
def test_partitions_in_all_places_give_the_results_of_one_index(mixed: Mixed, query: str | Document) -> None:
    with ExitStack() as opened:
        one, net = (opened.enter_context(Index.open(path, encoder=FakeEncoder())) for path in (mixed.one, mixed.net))
        for options in ({}, {"k": 5, "offset": 4, "where": "family = 'even'"}):
            if isinstance(query, str):
                found, expected = (index.search_id(query, **options) for index in (net, one))  # type: ignore[arg-type]
            else:
                found, expected = (index.search(query, **options) for index in (net, one))  # type: ignore[arg-type]
            assert answer(found) == answer(expected)
            assert found.status is Status.CERTIFIED
        assert net.document("doc004") == one.document("doc004")
        counts = ("documents", "encoded", "chunks", "tokens_read")
        assert [net.facts[name] for name in counts] == [one.facts[name] for name in counts]
        novelty = [[(part.section, part.novelty) for part in index.novelty(query)] for index in (net, one)]
        assert novelty[0] == novelty[1]
        assert find_pairs(net, PairSettings(0.3)).pairs == find_pairs(one, PairSettings(0.3)).pairs


@pytest.mark.postgres
def test_a_schema_knows_which_partition_it_holds(mixed: Mixed) -> None:
    addresses = [entry.address for entry in read_manifest(mixed.net).partitions]
    assert addresses[0] == str((mixed.parts / "0000.lm").resolve())
    assert addresses[1] == str(mixed.schema) and addresses[2].startswith("http://")
    with pytest.raises(IndexMismatch, match="is the copy of a partition, which takes no documents"):
        build(mixed.schema, [TEXT], encode="none")
    with pytest.raises(IndexMismatch, match="shares: longmatch rebase INDEX"):
        rebase(mixed.schema)


@pytest.mark.postgres
def test_one_index_in_a_schema_is_no_partition(mixed: Mixed, tmp_path: Path) -> None:
    whole = new_address()
    partition(mixed.one, whole, 1)
    with pytest.raises(IndexMismatch, match=r"schema=papers\d+ holds an index that is no partition"):
        connect(tmp_path / "net", [str(whole)])


@pytest.mark.postgres
def test_a_database_that_does_not_answer_is_named_or_left_out(mixed: Mixed, tmp_path: Path) -> None:
    shutil.copytree(mixed.net, tmp_path / "net")
    gone = f"postgresql://postgres@/postgres?host={tmp_path}&schema=papers"
    point_to(tmp_path / "net", {1: (gone,)})
    name = rf"partition 1 at postgresql://postgres@/postgres\?host={tmp_path}&schema=papers"
    with (
        Index.open(tmp_path / "net", encoder=FakeEncoder(), access=Access(5)) as net,
        pytest.raises(PartitionUnavailable, match=f"{name} does not answer"),
    ):
        net.search(TEXT)
    with Index.open(tmp_path / "net", encoder=FakeEncoder(), access=Access(5, is_partial=True)) as net:
        found = net.search(TEXT)
    assert (found.status, found.n_not_searched) == (Status.PARTIAL, read_manifest(mixed.net).partitions[1].n_documents)


@pytest.mark.postgres
def test_another_partition_in_a_schema_is_not_searched(mixed: Mixed, tmp_path: Path) -> None:
    shutil.copytree(mixed.net, tmp_path / "net")
    other = new_address()
    partition(mixed.parts / "0002.lm", other, 1)
    point_to(tmp_path / "net", {1: (str(other),)})
    refused = pytest.raises(PartitionUnavailable, match="is partition 2 of 3, not partition 1 of 3")
    with Index.open(tmp_path / "net", encoder=FakeEncoder()) as net, refused:
        net.search(TEXT)


def test_folders_of_another_index_are_read_and_not_written(folders: Path, tmp_path: Path) -> None:
    parts = Path(shutil.copytree(folders / "x.parts", tmp_path / "x.parts"))
    connect(tmp_path / "net", [str(parts / f"{number:04d}.lm") for number in (2, 0, 1)])
    with ExitStack() as opened:
        one, net = (
            opened.enter_context(Index.open(path, encoder=FakeEncoder()))
            for path in (folders / "one.lm", tmp_path / "net")
        )
        assert answer(net.search(TEXT)) == answer(one.search(TEXT))
    for write in (lambda: build(tmp_path / "net", [TEXT], encode="none"), lambda: verify(tmp_path / "net")):
        with pytest.raises(IndexMismatch, match="this needs its files here"):
            write()
    rebase(parts)
    with (
        Index.open(tmp_path / "net", encoder=FakeEncoder()) as net,
        pytest.raises(IndexMismatch, match="connect again"),
    ):
        net.search(TEXT)


def test_addresses_that_do_not_make_one_index_are_refused(folders: Path, tmp_path: Path) -> None:
    first = folders / "x.parts" / "0000.lm"
    with pytest.raises(IndexMismatch, match=r"no address holds partition 1, 2 of 3; name it too"):
        connect(tmp_path / "net", [str(first)])
    with pytest.raises(IndexMismatch, match="only servers can be replicas of each other"):
        connect(tmp_path / "net", [str(folders / "x.parts" / f"{number:04d}.lm") for number in (0, 0, 1, 2)])
    with pytest.raises(IndexMismatch, match="was given with a password, which a manifest does not keep"):
        connect(tmp_path / "net", ["postgresql://me:secret@host/papers?schema=p0"])
    assert not (tmp_path / "net").exists()
