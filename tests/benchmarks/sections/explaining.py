"""An encoder that explains matches by the cosines of its chunks."""

from __future__ import annotations

from collections.abc import Sequence

from engine.encoders.encoder import EncodedDocument
from engine.encoders.explanation import ModelExplanation
from engine.text.document import Document
from tests.fakes import FakeEncoder


class Explaining(FakeEncoder):
    cannot_explain = None

    def explain(self, query: Document, targets: Sequence[Document]) -> list[ModelExplanation]:
        mine, *theirs = self.encode([query, *targets])
        return [explanation(query, mine, target, own) for target, own in zip(targets, theirs, strict=True)]


def explanation(query: Document, mine: EncodedDocument, target: Document, own: EncodedDocument) -> ModelExplanation:
    cosines = mine.chunks @ own.chunks.T
    sides = (query, mine.chunk_spans, cosines.sum(axis=1)), (target, own.chunk_spans, cosines.sum(axis=0))
    return ModelExplanation.of_chunks("made", "", *sides, cosines)
