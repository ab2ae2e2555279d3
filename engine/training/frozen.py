"""Training of the second stage alone: the first stage encodes each document once, and its states are stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn

from engine.encoders.encoder import SegmentedDocument
from engine.encoders.trainable import Embedded, TrainableEncoder, inference
from engine.errors import TrainingError
from engine.text.document import Document
from engine.text.spans import Chunk, Section


class FrozenFirstStage(TrainableEncoder):
    """An encoder whose first stage is computed once per document and never trained.

    Nearly all work of an encoder is its first stage, so a step costs a hundredth:
    the mode for machines without a GPU. The states of every document read are kept in half
    precision, 2 H bytes a chunk. The parameters that states depend on get no gradient,
    so they do not change.
    """

    def __init__(self, encoder: TrainableEncoder) -> None:
        """Wrap an encoder with a trained second stage.

        Raises:
            TrainingError: the second stage has no parameters.
        """
        if encoder.kind == "mean":
            raise _nothing_left(encoder)
        for weight in _first_stage(encoder):
            weight.requires_grad_(False)
        self._inner = encoder
        # The key includes the text: two corpora can use the same doc_id.
        self._states: dict[tuple[str, str], dict[Chunk, Tensor]] = {}
        self.kind = encoder.kind
        self.module = encoder.module
        self.name = encoder.name
        self.width = encoder.width
        self.device, self.reader = encoder.device, encoder.reader
        self.chunk_tokens = encoder.chunk_tokens

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the wrapped encoder."""
        return self._inner.fingerprint

    @classmethod
    def load(
        cls, folder: Path, config: Mapping[str, Any], *, name: str, device: str | None, dtype: torch.dtype | None
    ) -> Self:
        """Always raises TrainingError: load the encoder, then wrap it."""
        raise TrainingError("load the encoder itself, then wrap it")

    def segment(self, document: Document) -> SegmentedDocument:
        """Segment with the wrapped encoder."""
        return self._inner.segment(document)

    def states(self, documents: Sequence[SegmentedDocument]) -> list[Tensor]:
        """States of the given chunks; computed for a whole document when it is first read."""
        found = []
        for document in documents:
            own = self._states.get(_key(document))
            if own is None or any(chunk not in own for chunk in document.chunks):
                own = self._read(document)
            found.append(torch.stack([own[chunk].float() for chunk in document.chunks]))
        return found

    def _read(self, document: SegmentedDocument) -> dict[Chunk, Tensor]:
        whole = self._inner.segment(document.document)
        with inference(self.module):
            states = self._inner.states([whole])[0].half()
        # Cloned outside inference mode, so that gradients can be recorded for results of these states.
        own = dict(zip(whole.chunks, states.clone().unbind(), strict=True))
        self._states[_key(document)] = own
        return own

    def combine(self, documents: Sequence[SegmentedDocument], states: Sequence[Tensor]) -> Embedded:
        """Combine with the wrapped encoder.

        Raises:
            TrainingError: gradients are recorded, but there is no parameter that could get one.
        """
        embedded = self._inner.combine(documents, states)
        if torch.is_grad_enabled() and not embedded.documents.requires_grad:
            raise _nothing_left(self._inner)
        return embedded

    def save_pretrained(self, folder: Path, *, dtype: torch.dtype | None = None) -> None:
        """Save the wrapped encoder."""
        self._inner.save_pretrained(folder, dtype=dtype)


def _first_stage(encoder: TrainableEncoder) -> list[nn.Parameter]:
    """The parameters that the state of a chunk depends on; some encoders use them in the second stage, too."""
    probe = encoder.segment(Document("", "", "a", (Section("", (), 0, 1),)))
    weights = [weight for weight in encoder.module.parameters() if weight.requires_grad]
    states = encoder.states([probe])[0]
    if not states.requires_grad:
        return []
    gradients = torch.autograd.grad(states.sum(), weights, allow_unused=True)
    return [weight for weight, gradient in zip(weights, gradients, strict=True) if gradient is not None]


def _nothing_left(encoder: TrainableEncoder) -> TrainingError:
    return TrainingError(
        f"this encoder of type {encoder.kind} has no parameters after its first stage, so nothing is left to train "
        "with that frozen; freeze some layers only, or begin with smith, colde or a tde with topics"
    )


def _key(document: SegmentedDocument) -> tuple[str, str]:
    return document.document.doc_id, document.document.text
