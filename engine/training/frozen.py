"""Training of the second stage alone: the first one reads each document once, and its states are kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor

from engine.document import Chunk, Document
from engine.encoders.encoder import SegmentedDocument
from engine.encoders.trainable import Embedded, TrainableEncoder, inference
from engine.errors import TrainingError


class FrozenFirstStage(TrainableEncoder):
    """An encoder whose first stage is computed once a document and never trained.

    Nearly all work of an encoder is its first stage, so a step costs a hundredth:
    the mode for machines without a GPU. States are kept in half precision, 2 H bytes a
    chunk. Weights of the first stage get no gradient, and so stay as they are.
    """

    def __init__(self, encoder: TrainableEncoder) -> None:
        """Wrap an encoder with a trained second stage.

        Raises:
            TrainingError: it has no weights there.
        """
        if encoder.kind == "mean":
            raise TrainingError(
                "a mean encoder has no weights after its backbone, so nothing is left to train with the backbone "
                "frozen; freeze some layers only, or begin with smith, colde or tde"
            )
        self._inner = encoder
        self._states: dict[str, dict[Chunk, Tensor]] = {}
        self.kind = encoder.kind
        self.module = encoder.module
        self.name = encoder.name
        self.width = encoder.width
        self.chunk_tokens = encoder.chunk_tokens

    @property
    def fingerprint(self) -> str:  # type: ignore[override]
        """That of the encoder inside."""
        return self._inner.fingerprint

    @classmethod
    def load(
        cls, folder: Path, config: Mapping[str, Any], *, name: str, device: str | None, dtype: torch.dtype | None
    ) -> Self:
        """Not to be called: load the encoder, then wrap it."""
        raise TrainingError("load the encoder itself, then wrap it")

    def segment(self, document: Document) -> SegmentedDocument:
        """As the encoder inside."""
        return self._inner.segment(document)

    def states(self, documents: Sequence[SegmentedDocument]) -> list[Tensor]:
        """States of the chunks asked for; computed for a whole document when it is first met."""
        found = []
        for document in documents:
            own = self._states.get(document.document.doc_id)
            if own is None or any(chunk not in own for chunk in document.chunks):
                own = self._read(document)
            found.append(torch.stack([own[chunk] for chunk in document.chunks]).float())
        return found

    def _read(self, document: SegmentedDocument) -> dict[Chunk, Tensor]:
        whole = self._inner.segment(document.document)
        with inference(self.module):
            states = self._inner.states([whole])[0].half()
        # Out of inference mode again, so that gradients may be recorded of what is made of them.
        own = dict(zip(whole.chunks, states.clone().unbind(), strict=True))
        self._states[document.document.doc_id] = own
        return own

    def combine(self, documents: Sequence[SegmentedDocument], states: Sequence[Tensor]) -> Embedded:
        """As the encoder inside."""
        return self._inner.combine(documents, states)

    def save_pretrained(self, folder: Path, *, dtype: torch.dtype | None = None) -> None:
        """Save the encoder inside."""
        self._inner.save_pretrained(folder, dtype=dtype)
