"""The commands on an index in PostgreSQL: made, brought up to date, copied both ways, searched like a folder."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("psycopg")

import longmatch
from engine.errors import IndexMismatch, QueryError
from engine.index import Index
from engine.result import Status
from engine.search.allowance import Allowance
from engine.store.address import Address
from engine.store.partitioned import open_snapshot
from engine.store.postgres.connection import holds_tables
from engine.text.document import Document
from indexer.building.builder import build
from indexer.cli import main
from indexer.partitions.splitting import partition
from indexer.serving.live_index import LiveIndex
from indexer.serving.settings import Settings
from tests.fakes import FakeEncoder, make_corpus, make_document
from tests.postgres_server import new_address

pytestmark = pytest.mark.postgres
N = 40
LICENCE = "permission is hereby granted to any person who obtains a copy of this text"
FILTERS = [None, "family = 'even'", "year >= 2010 and topic in (1, 2, 3)", "not family like 'E%'", "topic = 99"]


def corpus() -> list[Document]:
    made = make_corpus(N, boilerplate=LICENCE)
    copies = [
        Document(f"{name}{one.doc_id}", one.title, one.text, one.sections, one.metadata, f"{name}{one.source}")
        for one in made[::3]
        for name in ("a-copy-of-", "z-copy-of-")
    ]
    ends = [("One", "topic1word2 topic2word1 common1 " * 9), ("Appendix", "topic3word3 topic1word2 common2 " * 9)]
    return [*made, *copies, *(make_document(f"with-appendix{number}", ends[: number + 1]) for number in range(2))]


def answer(result: longmatch.Result) -> dict[str, Any]:
    """A result without its time and its provenance."""
    return {name: value for name, value in result.to_dict().items() if name not in ("seconds", "provenance")}


def run(*arguments: object, status: int = 0) -> Result:
    found = CliRunner().invoke(main, [str(one) for one in arguments], catch_exceptions=False)
    assert found.exit_code == status, found.output
    return found


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, tuple[Index, Index]]]:
    """An index in a folder and its copy in PostgreSQL, of words and of vectors."""
    folder, opened = tmp_path_factory.mktemp("copied"), dict[str, tuple[Index, Index]]()
    for kind, way in (("words", "none"), ("vectors", "all")):
        path, address = folder / kind, new_address()
        build(path, corpus(), encoder=FakeEncoder(), encode=way, factory="Flat")  # type: ignore[arg-type]
        partition(path, address, 1)
        encoder = FakeEncoder() if kind == "vectors" else None
        opened[kind] = (Index.open(path, encoder=encoder), Index.open(address, encoder=encoder))
    yield opened
    for both in opened.values():
        for index in both:
            index.close()


@pytest.mark.slow
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    kind=st.sampled_from(["words", "vectors"]),
    query=st.one_of(
        st.integers(0, N - 1).map(lambda number: f"doc{number:03d}"),
        st.lists(st.integers(0, 3), min_size=3, max_size=30).map(
            lambda topics: make_document("q", " ".join(f"topic{topic}word{topic + 1} common1" for topic in topics))
        ),
    ),
    k=st.sampled_from([1, 3, 10, 100]),
    offset=st.sampled_from([0, 1, 7, 70]),
    where=st.sampled_from(FILTERS),
    without=st.sampled_from([(), ("doc003",), ("a-copy-of-doc003", "doc006")]),
    mode=st.sampled_from(["similar", "containment"]),
    skip=st.sampled_from([(), ("boilerplate",), ("appendix",)]),
)
def test_results_are_those_of_the_folder(
    pairs: dict[str, tuple[Index, Index]],
    kind: str,
    query: str | Document,
    k: int,
    offset: int,
    where: str | None,
    without: tuple[str, ...],
    mode: str,
    skip: tuple[str, ...],
) -> None:
    found = []
    for index in pairs[kind]:
        search = index.search_id if isinstance(query, str) else index.search
        found.append(search(query, k=k, offset=offset, where=where, without=without, mode=mode, exact=True, skip=skip))  # type: ignore[arg-type]
    assert answer(found[1]) == answer(found[0])
    assert found[1].status is Status.CERTIFIED


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """A folder of Markdown files."""
    folder = tmp_path / "texts"
    folder.mkdir()
    for number, topic in enumerate(("fox", "fox", "dog", "dog", "river")):
        lines = [
            f"# {topic.title()} {number}",
            *(f"The {topic} {word} over {number}." for word in ("runs", "jumps") * 9),
        ]
        (folder / f"{number}.md").write_text("\n\n".join(lines))
    return folder


@pytest.mark.slow
def test_the_index_command_makes_and_updates_an_index(texts: Path) -> None:
    address = new_address()
    assert "5 added" in run("index", address, texts, "--encode", "none").output
    (result,) = json.loads(run("query", address, "--id", "0.md", "-k", 2, "--format", "json").stdout)["results"]
    assert result["hits"][0]["id"] == "1.md"
    (texts / "1.md").write_text("# River 1\n\nThe river runs.")
    (texts / "2.md").unlink()
    report = run("index", address, texts, "--encode", "none", "--prune").output
    assert "0 added, 1 replaced, 3 unchanged, 1 removed" in report
    assert "The river runs." in run("show", address, "1.md", "--text").output
    assert [line.split()[0] for line in run("show", address).output.splitlines()] == ["0.md", "3.md", "4.md", "1.md"]


@pytest.mark.slow
def test_a_built_index_gives_the_results_of_a_folder(texts: Path, tmp_path: Path) -> None:
    address, folder = new_address(), tmp_path / "x.lm"
    for place in (address, folder):
        longmatch.build(place, texts, encode="none").close()
    with longmatch.open(str(address.url)) as mine, longmatch.open(folder) as theirs:
        for name in ("0.md", "4.md"):
            assert answer(mine.search(texts / name)) == answer(theirs.search(texts / name))


@pytest.mark.slow
def test_a_query_encodes_what_it_needs_and_keeps_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"FIRST_DOCUMENTS": 8, "FEWEST_FIRST": 4, "ALL_TOKENS": 0}.items():  # as for a large corpus
        monkeypatch.setattr(f"indexer.generation.reference.{name}", value)
    address, documents = new_address(), corpus()
    build(address, documents, encoder=FakeEncoder(), encode="none")
    build(address, [], encoder=FakeEncoder(), encode="later")
    with open_snapshot(address) as snapshot:
        n_before = int(snapshot.has_vectors.sum())
    encoder = FakeEncoder()
    with Index.open(address, encoder=encoder) as index:
        found = index.search(documents[0], k=3, allowance=Allowance(candidates=9))
    assert found.encoding is not None
    with open_snapshot(address) as snapshot:
        assert int(snapshot.has_vectors.sum()) == n_before + found.encoding.n_encoded_now
    report = build(address, [], encoder=FakeEncoder())
    with open_snapshot(address) as snapshot:
        assert snapshot.has_vectors.all() and report.n_missing == 0


def test_documents_are_removed_and_the_reference_drawn_again(texts: Path) -> None:
    address = new_address()
    run("index", address, texts, "--encode", "none")
    assert "2 removed" in run("remove", address, "0.md", "4.md").output
    assert "reference 2: 0 of 3 documents" in run("rebase", address).output
    facts = json.loads(run("info", address, "--json").output)
    assert (facts["documents"], facts["reference"]["version"]) == (3, 2)
    assert run("remove", address, "0.md", status=1).output.startswith("Error: no document '0.md' in postgresql://")


@pytest.mark.slow
def test_copies_to_and_from_postgresql_keep_the_vectors_and_the_reference(tmp_path: Path) -> None:
    """Folder -> PostgreSQL -> three partitions -> PostgreSQL: the vectors and the reference stay, bit by bit."""
    folder, parts, addresses = tmp_path / "x.lm", tmp_path / "x.parts", [new_address(), new_address()]
    build(folder, corpus(), encoder=FakeEncoder(), factory="Flat")
    partition(folder, addresses[0], 1)
    partition(addresses[0], parts, 3)
    report = partition(parts, addresses[1], 1)
    assert report.n_documents == (len(corpus()),)
    with open_snapshot(folder) as first, open_snapshot(addresses[1]) as last:
        order = np.argsort(first.doc_ids()), np.argsort(last.doc_ids())
        for mine, theirs in zip(last.chunk_rows(order[1]), first.chunk_rows(order[0]), strict=True):
            np.testing.assert_array_equal(mine, theirs)
        np.testing.assert_array_equal(last.reference.hashes, first.reference.hashes)


def test_an_interrupted_copy_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, address = tmp_path / "x.lm", new_address()
    build(folder, corpus(), encode="none")
    monkeypatch.setattr("indexer.partitions.splitting._DOCUMENTS_AT_ONCE", 20)

    def log(_line: str) -> None:
        monkeypatch.setattr("indexer.partitions.splitting._derive", _interrupted)

    def _interrupted(*_arguments: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        partition(folder, address, 1, log=log)
    assert not holds_tables(address)
    monkeypatch.undo()
    assert partition(folder, address, 1).n_documents == (len(corpus()),)
    with pytest.raises(IndexMismatch, match="is there already; name a new schema"):
        partition(folder, address, 1)


def test_a_run_that_commits_nothing_leaves_nothing(tmp_path: Path) -> None:
    address = new_address()
    (tmp_path / "empty.txt").write_text("...")
    assert "1 failed" in run("index", address, tmp_path / "empty.txt", "--encode", "none", status=1).output
    assert not holds_tables(address)


def test_a_document_with_nul_fails_alone() -> None:
    address = new_address()
    report = build(address, [make_document("a\0b", "fox dog"), make_document("good", "fox dog")], encode="none")
    assert [(one.source, one.doc_id) for one in report.failures] == [("a\ufffdb.txt", "a\ufffdb")]
    assert "NUL, which PostgreSQL does not store" in report.failures[0].reason
    with open_snapshot(address) as snapshot:
        assert (snapshot.doc_ids(), len(snapshot.failures())) == (["good"], 1)


@pytest.mark.slow
def test_replay_and_diff_work_with_an_index_in_postgresql(texts: Path, tmp_path: Path) -> None:
    address, folder, stored = new_address(), tmp_path / "x.lm", tmp_path / "r.json"
    for place in (address.url, folder):
        run("index", place, texts, "--encode", "none")
    run("query", address, "--id", "0.md", "--format", "json", "-o", stored)
    refused = run("replay", stored, status=1).output
    assert refused.startswith(f"Error: the index of the result is at {address}; name it, to connect there")
    assert "equal" in run("replay", stored, "--index", address.url).output
    assert "equal" in run("diff", address.url, folder, "--id", "0.md").output


def test_the_error_names_a_missing_index() -> None:
    address = new_address()
    for arguments in (("query", address, "--id", "x"), ("info", address), ("remove", address, "x")):
        assert run(*arguments, status=1).output.startswith(f"Error: {address} holds no index")


@pytest.mark.parametrize("command", [("verify",), ("repair",), ("compact",), ("backup", "x.tar")])
def test_commands_on_files_refuse_an_address(command: Sequence[str]) -> None:
    name, *others = command
    output = run(name, "postgresql://ann:secret@db/papers", *others, status=1).output
    assert output.startswith(f"Error: {name} works on the files of a folder, and postgresql://ann@db/papers is on a")


def test_options_for_folders_are_refused() -> None:
    address = Address.of("postgresql://db/papers")
    with pytest.raises(QueryError, match="leave --disk out"):
        build(address, [], encode="none", disk_bytes=1 << 30)
    with pytest.raises(QueryError, match="leave --factory out"):
        build(address, [], encode="none", factory="Flat")


def test_a_split_into_a_schema_is_refused(built_folder: Path) -> None:
    with pytest.raises(QueryError, match="holds one index, not 2 partitions; pass -p 1"):
        partition(built_folder, Address.of("postgresql://db/papers"), 2)


@pytest.mark.slow
def test_a_served_index_follows_commits_to_the_database() -> None:
    address = new_address()
    build(address, corpus()[:10], encode="none")
    live = LiveIndex(address, Settings(threads=1))
    try:
        live.load()
        assert (live.n_documents, live.reload()) == (10, False)
        build(address, corpus(), encode="none")
        assert (live.reload(), live.n_documents) == (True, len(corpus()))
    finally:
        live.close()
