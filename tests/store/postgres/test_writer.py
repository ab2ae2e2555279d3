"""Commits to PostgreSQL: whole or not at all, one writer, and committed documents come back."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pytest

pytest.importorskip("psycopg")

from engine.errors import IndexBusy, IndexMismatch, StorageError
from engine.store.address import Address
from engine.store.partitioned import open_snapshot
from engine.store.postgres.connection import connect
from engine.store.postgres.snapshot import PostgresSnapshot
from engine.store.postgres.writer import PostgresWriter, remove_empty
from engine.text.document import Document
from engine.words.counts import WordTables
from tests.fakes import FakeEncoder, make_corpus, make_document
from tests.postgres_server import new_address

pytestmark = pytest.mark.postgres
ENCODER = FakeEncoder()
FAKE = {"name": "fake", "fingerprint": ENCODER.fingerprint, "width": ENCODER.width}


@pytest.fixture
def address() -> Address:
    return new_address()


@pytest.fixture
def writer(address: Address) -> Iterator[PostgresWriter]:
    with PostgresWriter(address) as opened:
        opened.claim(FAKE)
        yield opened


def commit(writer: PostgresWriter, *documents: Document) -> list[int]:
    return writer.commit(list(zip(documents, ENCODER.encode(list(documents)), strict=True)))


def version(name: str, word: str) -> Document:
    return make_document(name, [("One", f"{word} " * 20), ("Two", f"{word} common " * 9)], metadata={"word": word})


def test_a_document_comes_back_whole(writer: PostgresWriter) -> None:
    document = make_document(
        "naïve/π", [("Überschrift", "topic 𝜋 naïve")], title="Größe 🙂", metadata={"é": ["ü", 1.5]}
    )
    commit(writer, document)
    encoded = ENCODER.encode([document])[0]
    with open_snapshot(writer.folder) as snapshot:
        at = np.array([0])
        ((found, coverage),) = snapshot.documents(at)
        assert (found, coverage) == (document, encoded.coverage)
        stored = snapshot.encoded(0, coverage)
        np.testing.assert_array_equal(stored.document, encoded.document.astype(np.float16).astype(np.float32))
        np.testing.assert_array_equal(stored.sections, encoded.sections.astype(np.float16).astype(np.float32))
        np.testing.assert_array_equal(stored.chunks, encoded.chunks.astype(np.float16).astype(np.float32))
        assert stored.chunk_spans == encoded.chunk_spans
        counted = writer.count_words([document])
        assert counted is not None
        check_same_words(snapshot.words(at, apart=True), counted)


def check_same_words(mine: WordTables, theirs: WordTables) -> None:
    for kind in ("words", "pairs"):
        found, expected = getattr(mine, kind), getattr(theirs, kind)
        for column in ("terms", "counts", "starts"):
            np.testing.assert_array_equal(getattr(found, column), getattr(expected, column))
        np.testing.assert_array_equal(found.lengths(), expected.lengths())
    assert (mine.apart is None) == (theirs.apart is None)
    if mine.apart is not None and theirs.apart is not None:
        for name in ("kinds", "section_starts", "groups", "group_starts"):
            np.testing.assert_array_equal(getattr(mine.apart, name), getattr(theirs.apart, name))
        check_same_words(mine.apart.counts, theirs.apart.counts)


def test_counts_that_are_kept_apart_by_kind_come_back(writer: PostgresWriter) -> None:
    sections = [("One", "fox dog river " * 5), ("Acknowledgements", "house fox " * 4), ("Appendix", "river fox " * 3)]
    documents = [make_document("plain", "fox dog " * 9), *(make_document(name, sections) for name in ("cited", "last"))]
    commit(writer, *documents)
    counted = writer.count_words(documents)
    assert counted is not None and counted.apart is not None and len(counted.apart.groups) >= 2
    with open_snapshot(writer.folder) as snapshot:
        check_same_words(snapshot.words(np.arange(3), apart=True), counted)
        assert snapshot.words(np.arange(3)).apart is None


def test_a_replaced_document_gets_another_id(writer: PostgresWriter) -> None:
    first = commit(writer, version("a", "fox"), version("b", "dog"))
    again = commit(writer, version("a", "cat"))
    assert again[0] > max(first)
    with open_snapshot(writer.folder) as snapshot:
        assert snapshot.doc_ids() == ["b", "a"]
        assert [document.text for document, _ in snapshot.documents(np.array([1]))] == [version("a", "cat").text]


def test_a_reader_sees_a_document_as_it_was_or_as_it_is(writer: PostgresWriter) -> None:
    """Read in a loop while another thread replaces: all of a document is of one version, and one reader sees one."""
    commit(writer, version("a", "fox"))
    seen: list[set[str]] = []
    is_over = threading.Event()

    def read() -> None:
        while not is_over.is_set() or len(seen) < 3:
            with PostgresSnapshot(writer.folder) as snapshot:
                words = set()
                for _ in range(2):
                    ((document, _),) = snapshot.documents(np.array([0]))
                    words |= {str(document.metadata["word"]), document.text.split()[-2]}
                    encoded = ENCODER.encode([document])[0].chunks
                    np.testing.assert_allclose(snapshot.chunk_vectors(np.array([0]))[0], encoded, atol=1e-3)
                seen.append(words)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for number in range(30):
            commit(writer, version("a", ("cat", "dog", "fox")[number % 3]))
    finally:
        is_over.set()
        reader.join(60)
    assert all(len(words) == 1 for words in seen), seen


def test_a_failed_commit_leaves_nothing(writer: PostgresWriter) -> None:
    commit(writer, version("a", "fox"))
    two = [version("b", "cat"), version("b", "dog")]  # of one name: the second breaks the transaction
    with pytest.raises(StorageError, match=r"duplicate key .*\(b\) already exists"):
        writer.commit(list(zip(two, ENCODER.encode(two), strict=True)))
    with open_snapshot(writer.folder) as snapshot:
        assert snapshot.doc_ids() == ["a"]
    commit(writer, version("b", "cat"))
    with open_snapshot(writer.folder) as snapshot:
        assert snapshot.doc_ids() == ["a", "b"]


def test_a_snapshot_does_not_change(writer: PostgresWriter) -> None:
    commit(writer, *make_corpus(3))
    with open_snapshot(writer.folder) as snapshot:
        commit(writer, version("doc000", "other"), version("new", "fox"))
        writer.remove([int(snapshot.roster.ids[1])])
        assert not snapshot.is_newest()
        assert (snapshot.doc_ids(), len(snapshot.words(np.arange(3)).words.starts)) == (
            ["doc000", "doc001", "doc002"],
            4,
        )
        assert len(snapshot.chunk_rows(np.arange(3))[0]) == snapshot.n_chunks
    with open_snapshot(writer.folder) as now:
        writer.add_demand([int(now.roster.ids[0])])  # no commit of documents
        assert (now.doc_ids(), now.is_newest()) == (["doc002", "doc000", "new"], True)


def test_there_is_one_writer(writer: PostgresWriter, address: Address) -> None:
    with pytest.raises(IndexBusy, match="another session is writing postgresql://"):
        PostgresWriter(address)
    with PostgresWriter(new_address()):
        pass  # another schema of the same database


def test_a_killed_writer_keeps_nobody_out(address: Address) -> None:
    killed = PostgresWriter(address)
    with connect(address) as session:
        ended = session.execute("SELECT pg_terminate_backend(pid, 5000) FROM pg_locks WHERE locktype = 'advisory'")
        assert ended.fetchone() == (True,)
    with PostgresWriter(address) as writer:
        writer.claim(FAKE)
        assert commit(writer, version("a", "fox"))
    with pytest.raises(StorageError, match="run the command again"):
        killed.indexed(["a"])
    killed.close()


def test_vectors_are_added_later(writer: PostgresWriter) -> None:
    document = version("a", "fox")
    (one,) = writer.commit([(document, ENCODER.encode([document])[0].unencoded(ENCODER.width, 40))])
    assert writer.unencoded() == [one]
    encoded = ENCODER.encode([document])
    assert writer.add_vectors([one, one + 1], encoded * 2) == 1
    assert writer.unencoded() == []
    with open_snapshot(writer.folder) as snapshot:
        assert snapshot.has_vectors.tolist() == [True]
        stored = snapshot.encoded(0, encoded[0].coverage)
        np.testing.assert_array_equal(stored.chunks, encoded[0].chunks.astype(np.float16).astype(np.float32))
        np.testing.assert_array_equal(stored.sections, encoded[0].sections.astype(np.float16).astype(np.float32))


def test_documents_that_queries_wanted_are_encoded_first(writer: PostgresWriter) -> None:
    made = [version(name, "fox") for name in "abc"]
    nothing = ENCODER.encode(made[:1])[0].unencoded(ENCODER.width, 40)
    ids = writer.commit([(one, nothing) for one in made])
    writer.add_demand([ids[2]])
    writer.add_demand([ids[2], ids[1]])
    assert writer.unencoded() == [ids[2], ids[1], ids[0]]


def test_failures_are_kept_until_they_are_resolved(writer: PostgresWriter) -> None:
    writer.record_failure("x.pdf", "no text", "x")
    writer.record_failure("y.pdf", "broken")
    writer.record_failure("y.pdf", "still broken")
    assert writer.failed_sources() == {"x.pdf", "y.pdf"}
    with open_snapshot(writer.folder) as snapshot:
        assert snapshot.failures() == [("x.pdf", "no text"), ("y.pdf", "still broken")]
    writer.keep_failures(["y.pdf"])
    writer.forget_failures(["y.pdf"])
    assert writer.failed_sources() == set()


def test_another_encoder_is_refused(writer: PostgresWriter) -> None:
    with pytest.raises(IndexMismatch, match="was built with encoder 'fake'"):
        writer.claim({"name": "other", "fingerprint": "o" * 32, "width": 16})


def test_nul_is_refused_by_name(writer: PostgresWriter) -> None:
    with pytest.raises(IndexMismatch, match="'a' cannot be stored: it holds the character NUL"):
        commit(writer, make_document("a", "fox\0dog"))


def test_an_empty_schema_holds_no_index(address: Address) -> None:
    with pytest.raises(IndexMismatch, match="holds no index; copy one there: longmatch partition INDEX"):
        open_snapshot(address)
    PostgresWriter(address).close()
    with pytest.raises(IndexMismatch, match="was begun but holds nothing yet"):
        open_snapshot(address)


def test_a_closed_writer_holds_no_lock_while_the_server_still_ends_its_session(
    address: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = PostgresWriter(address)
    with monkeypatch.context() as patched:
        patched.setattr(first._session, "close", lambda: None)  # the server has not noticed yet
        first.close()
    PostgresWriter(address).close()
    first.close()


def test_only_an_empty_index_is_removed(address: Address) -> None:
    PostgresWriter(address).close()
    with connect(address) as session:
        session.execute("CREATE TABLE of_others (x int)")
    remove_empty(address)
    with connect(address) as session:
        left = session.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", [address.schema]).fetchall()
    assert left == [("of_others",)]
    with PostgresWriter(address) as writer:
        writer.claim(FAKE)
        commit(writer, version("a", "fox"))
    remove_empty(address)
    with open_snapshot(address) as snapshot:
        assert snapshot.doc_ids() == ["a"]


def test_the_types_of_pgvector_are_shared_by_schemas() -> None:
    first, second = new_address(), new_address()
    for address in (first, second):
        PostgresWriter(address).close()
    with connect(first) as session:
        session.execute(f"DROP SCHEMA {first.schema} CASCADE".encode())
    with PostgresWriter(second) as writer:
        writer.claim(FAKE)
        assert commit(writer, version("a", "fox"))


def test_the_error_for_a_server_that_does_not_answer_names_it() -> None:
    with pytest.raises(StorageError, match=r"postgresql:///x\?host=/nowhere.*check that the server runs"):
        open_snapshot(Address.of("postgresql:///x?host=/nowhere"))
