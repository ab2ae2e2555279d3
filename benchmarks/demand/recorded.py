"""An encoder that looks vectors up in an index that is whole, so that what is encoded when can be counted quickly."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from engine.document import Document
from engine.encoders.encoder import EncodedDocument, Encoder, SegmentedDocument
from engine.errors import QueryError
from engine.index import Index


class RecordedEncoder(Encoder):
    """Gives the stored vectors of indexed documents; other documents go to the encoder of the index."""

    def __init__(self, index: Index) -> None:
        """Read from an index that has all vectors and stays open."""
        self._index = index
        self.name = index.encoder.name
        self.width = index.encoder.width

    @property
    def fingerprint(self) -> str:
        """Of the encoder that made the vectors."""
        return self._index.encoder.fingerprint

    def save_pretrained(self, folder: Path) -> None:
        """Save the encoder that made the vectors."""
        self._index.encoder.save_pretrained(folder)

    def segment(self, document: Document) -> SegmentedDocument:
        """An indexed document without its token ids, which nothing reads."""
        try:
            is_indexed = self._index.document(document.doc_id).text == document.text
        except QueryError:
            is_indexed = False
        if not is_indexed:
            return self._index.encoder.segment(document)
        vectors = self._index.stored_query(document.doc_id).vectors
        return SegmentedDocument(document, vectors.chunk_spans, (), vectors.coverage)

    def encode_segmented(self, documents: Sequence[SegmentedDocument]) -> list[EncodedDocument]:
        """Look up, or encode."""
        return [
            self._index.encoder.encode_segmented([one])[0]
            if one.token_ids
            else self._index.stored_query(one.document.doc_id).vectors
            for one in documents
        ]
