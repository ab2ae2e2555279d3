"""Builds, or resumes, an index in a work folder: of a dataset, or of any documents whose vectors are needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.datasets import Dataset, DatasetError, checksum, read_documents
from benchmarks.systems import BuildCost, encoder_label
from engine.encoders.encoder import Encoder
from engine.encoders.loading import load_encoder
from engine.errors import IndexMismatch
from engine.index import Index
from engine.store.snapshot import IndexSnapshot
from engine.text.document import Document
from indexer.building.builder import build
from indexer.building.report import BuildReport


@dataclass(frozen=True)
class Prepared:
    """An open index that holds the whole corpus."""

    index: Index
    encoder: str  # name@fingerprint; "" for an index of words
    cost: BuildCost


def check_vectors(index: Path) -> None:
    """Check that an index has chunk vectors."""
    with IndexSnapshot(index) as snapshot:
        if not snapshot.n_chunks:
            raise IndexMismatch(f"{index} holds words alone and no vectors; add them: longmatch index {index}")


def prepared_index(
    dataset: Dataset, encoder_name: str, work: Path, log: Callable[[str], None]
) -> AbstractContextManager[Prepared]:
    """Bring the index of `dataset` under an encoder up to date, and open it.

    The folder is named by the checksum of the data and the encoder's fingerprint, so that changed data or parameters
    never use an old index. The cost is that of this call: nearly 0 where the index was complete before. `log` gets a
    line after each commit.
    """
    return prepared_documents(_named(dataset), read_documents(dataset), encoder_name, work, log)


def prepared_documents(
    name: str,
    documents: Iterable[Document],
    encoder_name: str,
    work: Path,
    log: Callable[[str], None],
    *,
    device: str | None = None,
) -> AbstractContextManager[Prepared]:
    """Build or resume an index of documents that are not a dataset: a cache of their vectors; see `prepared_index`."""
    encoder = load_encoder(encoder_name, device=device)
    return _prepared(name, documents, label_of(encoder_name, encoder.fingerprint), encoder, work, log)


def prepared_words(dataset: Dataset, work: Path, log: Callable[[str], None]) -> AbstractContextManager[Prepared]:
    """As `prepared_index`, for an index that holds words alone; nothing is encoded."""
    return _prepared(_named(dataset), read_documents(dataset), "", None, work, log)


@contextmanager
def _prepared(
    name: str,
    documents: Iterable[Document],
    label: str,
    encoder: Encoder | None,
    work: Path,
    log: Callable[[str], None],
) -> Iterator[Prepared]:
    work.mkdir(parents=True, exist_ok=True)
    path = work / f"{name}-{label or 'words'}.lm"
    report = build(
        path,
        documents,
        encoder=encoder,
        encode="all" if encoder else "none",
        progress=lambda so_far: log(f"{so_far.n_seen:,} documents, {so_far.n_tokens:,} tokens, {so_far.seconds:.0f} s"),
    )
    check_failures(report)
    with Index.open(path, encoder=encoder) as index:
        yield Prepared(index, label, BuildCost(round(report.seconds, 1), report.n_tokens))


def _named(dataset: Dataset) -> str:
    return f"{dataset.name}@{checksum(dataset)}"


def label_of(name: str, fingerprint: str) -> str:
    """An encoder as name@fingerprint, the way records name it."""
    return f"{encoder_label(name)}@{fingerprint[:12]}"


EXACT = "Flat"  # FAISS factory string whose lists are exact, so that no measurement depends on an ANN index


def index_documents(
    path: Path, documents: Sequence[Document], encoder: Encoder, log: Callable[[str], None] = lambda _: None
) -> None:
    """Make or update an index by `indexer.building`, with exact lists, replacing documents by doc_id."""
    n = len(documents)
    report = build(
        path,
        documents,
        encoder=encoder,
        factory=EXACT,
        progress=lambda so_far: log(f"{so_far.n_seen:,} of {n:,} documents, {so_far.seconds:.0f} s"),
    )
    check_failures(report)


def check_failures(report: BuildReport) -> None:
    """Check that all documents were indexed; others would make another corpus."""
    if report.failures:
        first = report.failures[0]
        raise DatasetError(
            f"{len(report.failures)} documents were not indexed, the first is {first.doc_id!r}: {first.reason}; mend "
            "them, or leave them out of the corpus"
        )
