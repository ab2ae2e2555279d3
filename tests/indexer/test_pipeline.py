"""A run skips what is unchanged, replaces what changed, records what fails, and resumes."""

import random
import threading
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import indexer.building.pipeline as pipeline_module
from engine.readers import Unreadable
from engine.store.checks import commits_of
from engine.store.snapshot import IndexSnapshot
from engine.store.writer import Writer
from engine.text.document import Document
from indexer.building.pipeline import Pipeline, run
from indexer.building.report import Activity, BuildReport
from tests.fakes import FakeEncoder, make_corpus, make_document

CORPUS = make_corpus(12)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "x.lm"


@pytest.fixture
def one_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every document is committed by itself."""
    monkeypatch.setattr(pipeline_module, "BATCH_CHARS", 1)


def indexed(
    folder: Path,
    documents: Iterable[Document | Unreadable],
    encoder: FakeEncoder,
    *,
    prune: bool = False,
    **options: Any,  # noqa: ANN401
) -> BuildReport:
    with Writer(folder) as writer:
        writer.claim({"name": encoder.name, "fingerprint": encoder.fingerprint, "width": encoder.width})
        return run([Pipeline(writer, encoder, **options)], iter(documents), prune=prune)


def contents(folder: Path) -> dict[str, str]:
    with IndexSnapshot(folder) as snapshot:
        return {document.doc_id: document.text for document, _ in snapshot.documents(np.arange(snapshot.n_documents))}


def failures(folder: Path) -> dict[str, str]:
    with IndexSnapshot(folder) as snapshot:
        return dict(snapshot.failures())


def texts(documents: list[Document]) -> dict[str, str]:
    return {document.doc_id: document.text for document in documents}


def test_a_first_run_adds_all_and_unchanged_documents_are_not_encoded_again(folder: Path, encoder: FakeEncoder) -> None:
    report = indexed(folder, CORPUS, encoder)
    assert contents(folder) == texts(CORPUS)
    encoded = FakeEncoder().encode(CORPUS)
    counts = (report.n_added, report.n_replaced, report.n_unchanged, report.n_removed, report.n_seen)
    assert counts == (12, 0, 0, 0, 12)
    assert report.n_tokens == sum(one.coverage.tokens_read for one in encoded)
    assert report.n_chunks == sum(len(one.chunks) for one in encoded)
    indexed(folder, CORPUS, encoder)
    encoder.batches.clear()
    report = indexed(folder, CORPUS[::-1], encoder)
    assert encoder.encoded == []
    assert (report.n_added, report.n_unchanged, report.n_tokens) == (0, 12, 0)


def test_changed_documents_are_replaced(folder: Path, encoder: FakeEncoder) -> None:
    indexed(folder, CORPUS, encoder)
    encoder.batches.clear()
    changed = make_document("doc004", "entirely new words")
    report = indexed(folder, [*CORPUS[:4], changed, *CORPUS[5:]], encoder)
    assert encoder.encoded == ["doc004"]
    assert (report.n_added, report.n_replaced, report.n_unchanged) == (0, 1, 11)
    assert contents(folder) == texts([*CORPUS[:4], changed, *CORPUS[5:]])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("batch_chars", [1, 700, 1 << 19])
def test_the_order_of_the_corpus_does_not_matter(
    tmp_path: Path, seed: int, batch_chars: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline_module, "BATCH_CHARS", batch_chars)
    shuffled = CORPUS.copy()
    random.Random(seed).shuffle(shuffled)
    indexed(tmp_path / "a.lm", shuffled[:7], FakeEncoder())
    indexed(tmp_path / "a.lm", shuffled[::-1], FakeEncoder())
    with IndexSnapshot(tmp_path / "a.lm") as snapshot:
        names = snapshot.doc_ids()
        vectors = dict(zip(names, snapshot.document_vectors, strict=True))
    assert contents(tmp_path / "a.lm") == texts(CORPUS)
    for document, one in zip(CORPUS, FakeEncoder().encode(CORPUS), strict=True):
        assert np.array_equal(vectors[document.doc_id], one.document.astype(np.float16))


def test_a_change_of_metadata_or_place_is_stored_but_not_encoded(folder: Path, encoder: FakeEncoder) -> None:
    indexed(folder, CORPUS, encoder)
    encoder.batches.clear()
    moved = replace(CORPUS[3], metadata={"year": 1999}, source="elsewhere/doc003.txt")
    report = indexed(folder, [moved], encoder)
    assert encoder.encoded == []
    assert report.n_unchanged == 1
    with IndexSnapshot(folder) as snapshot:
        position = snapshot.position("doc003")
        assert position is not None
        assert snapshot.documents(np.array([position]))[0][0] == moved
        assert snapshot.matching("year = 1999").sum() == 1


def test_nothing_is_removed_without_prune_and_an_empty_corpus_prunes_all(folder: Path, encoder: FakeEncoder) -> None:
    indexed(folder, CORPUS, encoder)
    assert indexed(folder, CORPUS[:2], encoder).n_removed == 0
    assert contents(folder) == texts(CORPUS)
    indexed(folder, CORPUS, encoder)
    assert indexed(folder, [], encoder).n_seen == 0
    assert contents(folder) == texts(CORPUS)
    assert indexed(folder, [], encoder, prune=True).n_removed == 12
    assert contents(folder) == {}


@pytest.mark.parametrize("batch_chars", [1, 1 << 19])
def test_prune_removes_documents_that_are_not_in_the_run(
    folder: Path, encoder: FakeEncoder, batch_chars: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline_module, "BATCH_CHARS", batch_chars)
    indexed(folder, CORPUS, encoder)
    kept = [*CORPUS[:3], make_document("doc003", "changed words"), make_document("new", "new words")]
    assert indexed(folder, kept, encoder, prune=True).n_removed == 8
    assert contents(folder) == texts(kept)


def test_prune_keeps_the_old_version_of_documents_that_cannot_be_read_now(folder: Path, encoder: FakeEncoder) -> None:
    indexed(folder, CORPUS[:3], encoder)
    now: list[Document | Unreadable] = [CORPUS[0], Unreadable("doc001.txt", "disk error", "doc001")]
    assert indexed(folder, [*now, make_document("doc002", "  ")], encoder, prune=True).n_removed == 0
    assert contents(folder) == texts(CORPUS[:3])


def test_prune_keeps_the_documents_of_a_file_that_broke_off(folder: Path, encoder: FakeEncoder) -> None:
    lines = [replace(document, source=f"corpus.jsonl.gz:{line}") for line, document in enumerate(CORPUS, start=1)]
    indexed(folder, lines, encoder)
    broken_off = Unreadable("corpus.jsonl.gz", "it is not a whole gzip file; pack it again", "corpus.jsonl")
    assert indexed(folder, [*lines[:4], broken_off], encoder, prune=True).n_removed == 0
    assert contents(folder) == texts(CORPUS)


def test_many_failures_are_committed_together(folder: Path, encoder: FakeEncoder) -> None:
    broken = [Unreadable(f"{number}.pdf", "it is encrypted", "") for number in range(200)]
    with Writer(folder) as writer:
        writer.claim({"name": encoder.name, "fingerprint": encoder.fingerprint, "width": encoder.width})
        before = commits_of(writer.meta)
        run([Pipeline(writer, encoder)], iter([*broken, CORPUS[0]]))
        assert commits_of(writer.meta) - before < 10
    assert failures(folder) == {one.source: one.reason for one in broken}


def test_failing_documents_are_recorded_and_the_rest_is_indexed(folder: Path, encoder: FakeEncoder) -> None:
    unreadable = Unreadable("bad.pdf", "it is encrypted", "bad.pdf")
    report = indexed(folder, [CORPUS[0], unreadable, make_document("void", " "), CORPUS[1]], encoder)
    assert contents(folder) == texts(CORPUS[:2])
    reason = "void: no text that the tokenizer can read"
    assert report.failures == [unreadable, Unreadable("void.txt", reason, "void")]
    assert failures(folder) == {"bad.pdf": "it is encrypted", "void.txt": reason}
    assert (report.n_added, report.n_seen) == (2, 4)


@pytest.mark.slow
@pytest.mark.parametrize(
    "broken",
    [
        make_document("d\ud800", "words"),
        make_document("d", "words \udcff"),
        make_document("d", "words", title="\ud800"),
        make_document("d", "words", source="caf\udce9.txt"),  # how Python names a file that is not UTF-8
        make_document("d", [("\udc00", "words")]),
        make_document("d", "words", metadata={"a": "\ud800"}),
        make_document("d", "words", metadata={"a": float("nan")}),  # not JSON, so that no filter could be evaluated
        make_document("d", "words", metadata={"a": {1, 2}}),  # type: ignore[dict-item]
    ],
    ids=["doc_id", "text", "title", "source", "heading", "metadata", "nan", "set"],
)
def test_a_document_that_cannot_be_stored_ends_no_run(folder: Path, encoder: FakeEncoder, broken: Document) -> None:
    report = indexed(folder, [CORPUS[0], broken, CORPUS[1]], encoder)
    assert contents(folder) == texts(CORPUS[:2])
    (failure,) = report.failures
    assert failures(folder) == {failure.source: failure.reason}
    assert failure.reason.startswith("it cannot be stored (")


@pytest.mark.slow
@pytest.mark.parametrize("well", ["changed", "as before"])
@pytest.mark.parametrize("source", ["doc000.txt", ""])
def test_a_failure_is_forgotten_when_it_can_be_read(folder: Path, encoder: FakeEncoder, well: str, source: str) -> None:
    document = replace(CORPUS[0], source=source)
    indexed(folder, [document], encoder)
    indexed(folder, [replace(document, text=" " * len(document.text))], encoder)
    assert list(failures(folder)) == [source or "doc000"]
    indexed(folder, [document if well == "as before" else replace(document, text=document.text.upper())], encoder)
    assert failures(folder) == {}


@pytest.mark.slow
@pytest.mark.parametrize("copies", [2, 3])
@pytest.mark.parametrize("batch_chars", [1, 1 << 19])
@pytest.mark.parametrize("is_there_before", [True, False])
def test_a_doc_id_that_comes_twice_is_indexed_once_and_recorded(
    folder: Path,
    encoder: FakeEncoder,
    copies: int,
    batch_chars: int,
    is_there_before: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pipeline_module, "BATCH_CHARS", batch_chars)
    if is_there_before:
        indexed(folder, [make_document("doc001", "the old text")], encoder)
    later = [make_document("doc001", f"the {word} text", source=f"{word}.txt") for word in ("old", "third")][
        : copies - 1
    ]
    first = make_document("doc001", "the first text")
    report = indexed(folder, [first, *CORPUS[3:9], *later], encoder)
    assert contents(folder) == texts([first, *CORPUS[3:9]])
    reason = "doc_id 'doc001' came twice in this run; the first one was indexed: give each document its own"
    assert report.failures == [Unreadable(one.source, reason, "doc001") for one in later]
    assert failures(folder) == {one.source: reason for one in later}


@pytest.mark.usefixtures("one_a_batch")
def test_an_encoder_that_breaks_leaves_what_was_committed(folder: Path) -> None:
    broken = FakeEncoder(breaks_on=["doc005"])
    with pytest.raises(RuntimeError, match="out of memory at doc005"):
        indexed(folder, CORPUS, broken)
    assert contents(folder) == texts(CORPUS[:5])
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("longmatch-read")]
    mended = FakeEncoder()
    report = indexed(folder, CORPUS, mended)
    assert mended.encoded == [document.doc_id for document in CORPUS[5:]]
    assert (report.n_added, report.n_unchanged) == (7, 5)
    assert contents(folder) == texts(CORPUS)


@pytest.mark.usefixtures("one_a_batch")
def test_a_corpus_that_breaks_off_leaves_what_was_committed(folder: Path, encoder: FakeEncoder) -> None:
    def breaking_off() -> Iterator[Document]:
        yield from CORPUS[:3]
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        indexed(folder, breaking_off(), encoder, prune=True)
    assert contents(folder).items() <= texts(CORPUS[:3]).items()
    assert indexed(folder, CORPUS, encoder).n_seen == 12
    assert contents(folder) == texts(CORPUS)


@pytest.mark.usefixtures("one_a_batch")
def test_progress_counts_only_what_is_on_disk(folder: Path, encoder: FakeEncoder) -> None:
    seen = []

    def progress(report: BuildReport) -> None:
        seen.append((report.n_added, len(contents(folder))))

    indexed(folder, CORPUS[:4], encoder, activity=Activity(BuildReport(), progress))
    assert seen == [(1, 1), (2, 2), (3, 3), (4, 4)]


def test_batches_have_the_size_of_their_texts(
    folder: Path, encoder: FakeEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline_module, "BATCH_CHARS", 3 * len(CORPUS[0].text))
    same = [replace(CORPUS[0], doc_id=f"d{number}") for number in range(5)]
    indexed(folder, same, encoder)
    assert encoder.batches == [["d0", "d1", "d2"], ["d3", "d4"]]


class ShrinkingEncoder(FakeEncoder):
    """Has room for ever fewer tokens, as on a GPU that others fill."""

    @property
    def tokens_at_once(self) -> int | None:
        return None if len(self.batches) < 2 else 4096 >> len(self.batches)


@pytest.mark.usefixtures("one_a_batch")
def test_smaller_batches_on_a_gpu_are_logged_once(folder: Path) -> None:
    logged: list[str] = []
    indexed(folder, CORPUS, ShrinkingEncoder(), log=logged.append)
    assert logged == ["the GPU has no room for larger batches: going on with 1,024 tokens at once"]
    assert contents(folder) == texts(CORPUS)
