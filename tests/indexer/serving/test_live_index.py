"""A served index: commits are followed, and queries that wait are encoded together."""

import shutil
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from engine.encoders.encoder import EncodedDocument, SegmentedDocument
from engine.errors import EncoderError, IndexMismatch, limited, step
from engine.index import Index
from engine.search.request import Request
from engine.store.writer import Writer
from engine.text.document import Document
from indexer.building.builder import build
from indexer.building.rewriting import partition
from indexer.generation import reference
from indexer.serving.answers import Refusal
from indexer.serving.live_index import LiveIndex, Progress, SharedEncoder, Stage, State, Subject
from indexer.serving.settings import ServerSettings
from indexer.upkeep.repair import remove as take_out
from tests.fakes import FakeEncoder, few_first_vectors, make_corpus, make_document
from tests.indexer.serving.clients import until

SETTINGS = ServerSettings(threads=2)


@pytest.fixture
def folder(built_folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(built_folder, tmp_path / "copy.lm"))


def opened(folder: Path, encoder: FakeEncoder | None = None) -> LiveIndex:
    live = LiveIndex(folder, SETTINGS, encoder or FakeEncoder())
    live.load()
    return live


def remove(folder: Path, doc_id: str) -> None:
    with Writer(folder) as writer:
        writer.remove([one.id for one in writer.indexed([doc_id]).values()])


def test_a_commit_is_seen_by_the_next_request_and_not_by_a_running_one(folder: Path) -> None:
    live = opened(folder)
    with live.lease() as before:
        assert not live.reload()
        remove(folder, "doc003")
        assert live.reload() and live.n_documents == 59
        assert before.n_documents == 60 and before.document("doc003").doc_id == "doc003"
    with live.lease() as after:
        assert after.n_documents == 59
    live.close()


@pytest.mark.slow
def test_a_commit_to_a_partition_and_another_reference_are_seen(folder: Path) -> None:
    parts = folder.with_name("x.parts")
    partition(folder, parts, 2)
    live = opened(parts)
    assert not live.reload()
    take_out(parts, ["doc003"])
    assert live.reload() and live.n_documents == 59
    reference.rebase(parts)
    assert live.reload()
    with live.lease() as index:
        assert index.snapshot.reference.version == 2
        assert [hit.doc_id for hit in index.search("doc004", Request(k=59))].count("doc003") == 0
    assert not live.reload()
    live.close()


def test_another_folder_in_the_same_place_is_seen(folder: Path) -> None:
    live = opened(folder)
    shutil.rmtree(folder)
    build(folder, make_corpus(4), encoder=FakeEncoder(), factory="Flat")
    assert live.reload() and live.n_documents == 4
    live.close()


def test_a_damaged_index_leaves_the_old_snapshot(folder: Path) -> None:
    live = opened(folder)
    remove(folder, "doc003")
    catalog = folder / "catalog.sqlite"
    content = catalog.read_bytes()
    catalog.write_bytes(b"damaged" * 1000)
    assert not live.reload()
    with live.lease() as index:
        assert index.n_documents == 60
    catalog.write_bytes(content)
    assert live.reload() and live.n_documents == 59
    live.close()


def n_encoded(folder: Path) -> int:
    with Index.open(folder) as index:
        return int(index.snapshot.has_vectors.sum())


def test_vectors_of_requests_are_shared(
    tmp_path: Path, corpus: list[Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    few_first_vectors(monkeypatch)
    folder, encoder = tmp_path / "later.lm", FakeEncoder()
    build(folder, corpus, encoder=encoder, encode="later")
    n_stored = n_encoded(folder)
    live = opened(folder, encoder)
    query = Document.from_text(corpus[7].text)
    with live.lease() as first:
        result = first.search(query, Request(k=3))
    n_before = len(encoder.encoded)
    with live.lease() as second:
        assert second is first
        again = second.search(query, Request(k=3))
    assert [(hit.doc_id, hit.score) for hit in again] == [(hit.doc_id, hit.score) for hit in result]
    assert result.encoding is not None and result.encoding.n_encoded_now > 0
    assert len(encoder.encoded) == n_before + 1  # the query
    assert n_encoded(folder) == n_stored == 8
    live.close()


def test_an_index_that_is_not_loaded_or_not_there_is_refused(folder: Path, tmp_path: Path) -> None:
    live = LiveIndex(folder, SETTINGS, FakeEncoder())
    with pytest.raises(Refusal, match="is being loaded"), live.lease():
        pass
    live.close()
    with pytest.raises(IndexMismatch, match="holds no index"):
        LiveIndex(tmp_path, SETTINGS)


DOCUMENTS = [make_document(f"query{number}", f"some words of query{number}") for number in range(4)]


class HeldEncoder(FakeEncoder):
    """Waits in its first batch until it is released."""

    def __init__(self, **settings: object) -> None:
        super().__init__(**settings)  # type: ignore[arg-type]
        self.has_begun, self.release = threading.Event(), threading.Event()

    def encode_segmented(self, documents: Sequence[SegmentedDocument]) -> list[EncodedDocument]:
        self.has_begun.set()
        assert self.release.wait(60)
        return super().encode_segmented(documents)


def encode_together(encoder: HeldEncoder) -> list[list[EncodedDocument] | BaseException]:
    """Encode the first query while the others arrive; return the vectors or the error of each."""
    shared = SharedEncoder(encoder)
    with ThreadPoolExecutor(len(DOCUMENTS)) as threads:
        running = [threads.submit(shared.encode, [DOCUMENTS[0]])]
        assert encoder.has_begun.wait(60)
        for number, document in enumerate(DOCUMENTS[1:], 1):
            running.append(threads.submit(shared.encode, [document]))
            until(lambda number=number: len(shared._waiting) == number)  # type: ignore[misc]
        encoder.release.set()
    shared.close()
    return [one.exception() or one.result() for one in running]


def test_queries_that_wait_are_encoded_together() -> None:
    encoder = HeldEncoder()
    found = encode_together(encoder)
    assert encoder.batches == [["query0"], ["query1", "query2", "query3"]]
    for document, encoded in zip(DOCUMENTS, found, strict=True):
        assert isinstance(encoded, list)
        np.testing.assert_array_equal(encoded[0].chunks, FakeEncoder().encode([document])[0].chunks)


def test_a_document_that_fails_does_not_affect_the_others() -> None:
    found = encode_together(HeldEncoder(breaks_on=["query2"]))
    assert [isinstance(one, RuntimeError) for one in found] == [False, False, True, False]


class SteppedEncoder(HeldEncoder):
    """Takes a step for each chunk, of a document of several chunks once it is released."""

    def __init__(self) -> None:
        super().__init__()
        self.n_steps = 0

    def encode_segmented(self, documents: Sequence[SegmentedDocument]) -> list[EncodedDocument]:
        for chunk in [chunk for document in documents for chunk in document.chunks][1:]:
            self.has_begun.set()
            assert chunk and self.release.wait(60)
            step()
            self.n_steps += 1
        return FakeEncoder.encode_segmented(self, documents)


LONG = make_document("long", " ".join(f"word{number}" for number in range(400)))


def test_a_much_shorter_query_does_not_wait_for_a_long_one() -> None:
    encoder = SteppedEncoder()
    shared = SharedEncoder(encoder)
    with ThreadPoolExecutor(2) as threads:
        running = [threads.submit(shared.encode, [LONG])]
        assert encoder.has_begun.wait(60)
        running.append(threads.submit(shared.encode, [DOCUMENTS[0]]))
        until(lambda: len(shared._waiting) == 1)
        encoder.release.set()
        found = [one.result()[0].chunks for one in running]
    shared.close()
    assert encoder.batches == [["query0"], ["long"]]
    for document, chunks in zip((LONG, DOCUMENTS[0]), found, strict=True):
        np.testing.assert_array_equal(chunks, FakeEncoder().encode([document])[0].chunks)


def test_what_no_request_waits_for_is_not_encoded_to_the_end() -> None:
    encoder, is_over = SteppedEncoder(), threading.Event()
    shared = SharedEncoder(encoder)

    def wait_no_more(_n_bytes: int) -> None:
        if is_over.is_set():
            raise Refusal(499, "stopped", "nobody waits", "send the request again")

    def ask() -> None:
        with limited(wait_no_more), pytest.raises(Refusal):
            shared.encode([LONG])

    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(ask)
        assert encoder.has_begun.wait(60)
        is_over.set()
        asked.result()
        encoder.release.set()
    assert shared.encode([DOCUMENTS[0]]) and encoder.batches == [["query0"]] and encoder.n_steps == 0
    shared.close()


def test_a_closed_encoder_refuses() -> None:
    shared = SharedEncoder(FakeEncoder())
    shared.close()
    with pytest.raises(EncoderError, match="shutting down; send the request again"):
        shared.encode(DOCUMENTS)


def test_tokens_are_counted_over_several_steps_up_to_what_was_expected() -> None:
    progress, share = Progress(), 0.0
    progress.expect(Subject.CANDIDATES, 100)
    with progress.encoding(60, lambda: share):
        share = 0.5
        assert progress.state == State(Stage.ENCODING, Subject.CANDIDATES, 30, 100)
    assert progress.state == State(Stage.ENCODING, Subject.CANDIDATES, 60, 100)
    with progress.encoding(40, lambda: share):
        assert progress.state == State(Stage.ENCODING, Subject.CANDIDATES, 80, 100)
    assert progress.state == State(Stage.SEARCHING)
    progress = Progress()
    progress.expect(Subject.QUERY, 100)
    with progress.encoding(130, lambda: 0.9):
        assert progress.state == State(Stage.ENCODING, Subject.QUERY, 100, 100)


def test_an_abandoned_search_ends_at_its_next_step() -> None:
    progress = Progress()
    progress.enter(Stage.READING)
    progress.abandon()
    with pytest.raises(Refusal, match="the client closed the connection"):
        progress.enter(Stage.SEARCHING)
    with pytest.raises(Refusal), progress.encoding(1, lambda: 0.0):
        pass
    assert progress.state == State(Stage.READING)
