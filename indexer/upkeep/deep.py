"""`verify --deep`: recomputes vectors and term counts of sampled documents from their stored text. Changes nothing.

Checksums show that a file is unchanged since it was written; this check shows that its contents match the text.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engine.encoders.encoder import EncodedDocument, Encoder
from engine.errors import DocumentError, named_faults
from engine.store.partitioned import Snapshot, open_snapshot
from engine.store.reference import sample_order
from engine.text.document import Document
from engine.words.counts import TermTable, WordTables, count_documents
from engine.words.segmenter import WordSegmenter
from indexer.upkeep.verify import Damage, Finding

SAMPLE = 32  # default number of documents
# Between a stored row and the recomputed one. Half precision, bfloat16 and other batches change a vector by less;
# another text or other parameters change it by more.
_LEAST_COSINE = 0.95


@named_faults
def verify_deep(
    path: str | Path, *, sample: int = SAMPLE, encoder: Encoder | None = None, device: str | None = None
) -> list[Finding]:
    """Compare stored vectors and term counts of some documents with those recomputed from their text.

    Args:
        sample: most documents; chosen by a hash of their names, so that a second run checks the same documents.

    Returns:
        A finding for each document that differs, by name.

    Raises:
        EncoderError: the encoder cannot be loaded.
        IndexDamaged: a file is not what was written.
        IndexMismatch: the encoder is not that of the index.
    """
    with open_snapshot(Path(path)) as snapshot:
        positions = np.sort(sample_order(snapshot.doc_ids())[:sample])
        documents = [document for document, _ in snapshot.documents(positions)]
        findings = _compare_words(snapshot, positions, documents)
        encoded = snapshot.has_vectors[positions]
        if encoded.any():
            used = _checked(snapshot, encoder, device)
            chosen = [document for document, has in zip(documents, encoded, strict=True) if has]
            findings += _compare_vectors(snapshot, positions[encoded], chosen, used)
    return sorted(findings, key=lambda finding: finding.where)


def _checked(snapshot: Snapshot, encoder: Encoder | None, device: str | None) -> Encoder:
    """The encoder of the index, after comparing its fingerprint."""
    # An index without vectors needs no encoder.
    from engine.index import Index

    return Index(snapshot, encoder, device).encoder


def _compare_words(snapshot: Snapshot, positions: NDArray[np.int64], documents: list[Document]) -> list[Finding]:
    if snapshot.language is None or not documents:
        return []
    counted = count_documents(WordSegmenter(snapshot.language), documents)
    stored = snapshot.words(positions)
    return [
        Finding(
            Damage.CONTENT, document.doc_id, "its term counts are not those of its text; remove it, then index it again"
        )
        for row, document in enumerate(documents)
        if _row(counted, row) != _row(stored, row)
    ]


def _row(tables: WordTables, row: int) -> list[tuple[bytes, bytes]]:
    return [_terms(table, row) for table in (tables.words, tables.pairs)]


def _terms(table: TermTable, row: int) -> tuple[bytes, bytes]:
    own = slice(int(table.starts[row]), int(table.starts[row + 1]))
    return table.terms[own].tobytes(), table.counts[own].tobytes()


def _compare_vectors(
    snapshot: Snapshot, positions: NDArray[np.int64], documents: list[Document], encoder: Encoder
) -> list[Finding]:
    findings = []
    for position, document in zip(positions.tolist(), documents, strict=True):
        try:
            difference = _difference(snapshot, position, encoder.encode([document])[0])
        except DocumentError as error:
            difference = str(error)
        if difference:
            findings.append(Finding(Damage.CONTENT, document.doc_id, f"{difference}; remove it, then index it again"))
    return findings


def _difference(snapshot: Snapshot, position: int, made: EncodedDocument) -> str:
    """How stored vectors differ from recomputed ones; "" where they do not."""
    chunks, _ = snapshot.chunk_vectors(np.array([position]))
    spans = np.array([(chunk.section, chunk.start, chunk.stop, chunk.n_tokens) for chunk in made.chunk_spans]).reshape(
        -1, 4
    )
    if not np.array_equal(spans, snapshot.spans(position)):
        return f"its {len(chunks)} chunks are not the {len(spans)} of its text"
    whole = snapshot.document_vectors[position : position + 1]
    pairs = [(whole, made.document[None]), (snapshot.section_vectors(position), made.sections), (chunks, made.chunks)]
    least = min(float((stored * rows).sum(1).min(initial=1.0)) for stored, rows in pairs if len(rows))
    if least < _LEAST_COSINE:
        return f"a stored vector has cosine {least:.3f} with that of its text"
    return ""
