"""An encoder that looks vectors up in fully encoded indexes, so that studies of encoding on demand are quick."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from engine.encoders.encoder import EncodedDocument, Encoder, SegmentedDocument
from engine.errors import EngineError
from engine.index import Index
from engine.text.document import Document


def is_indexed(index: Index, document: Document) -> bool:
    """Whether an index holds a document with this doc_id and text."""
    try:
        return index.document(document.doc_id).text == document.text
    except EngineError:
        return False


class RecordedEncoder(Encoder):
    """Returns the stored vectors of documents by doc_id; other documents go to the encoder of the first index.

    The indexes have all vectors, and stay open.
    """

    def __init__(self, *indexes: Index) -> None:
        self.encoder = indexes[0].encoder
        self.homes = {name: index for index in indexes for name in index.snapshot.doc_ids()}
        self.name, self.width = self.encoder.name, self.encoder.width

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the encoder that made the vectors."""
        return self.encoder.fingerprint

    def save_pretrained(self, folder: Path) -> None:
        """Save the encoder that made the vectors."""
        self.encoder.save_pretrained(folder)

    def recorded(self, document: Document) -> EncodedDocument | None:
        """The stored vectors; None where there are none of this text."""
        home = self.homes.get(document.doc_id)
        return home.stored_query(document.doc_id).vectors if home and is_indexed(home, document) else None

    def segment(self, document: Document) -> SegmentedDocument:
        """Segment a document; a recorded one gets no token ids, since nothing reads them."""
        vectors = self.recorded(document)
        if vectors is None:
            return self.encoder.segment(document)
        return SegmentedDocument(document, vectors.chunk_spans, (), vectors.coverage)

    def encode_segmented(self, documents: Sequence[SegmentedDocument]) -> list[EncodedDocument]:
        """Look the vectors of each document up, or encode it."""
        found = ((one, None if one.token_ids else self.recorded(one.document)) for one in documents)
        return [vectors or self.encoder.encode_segmented([one])[0] for one, vectors in found]
