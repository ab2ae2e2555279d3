"""Training of the second stage alone: the first stage encodes each document once, and its states are stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn

from engine.document import Chunk, Document, Section
from engine.encoders.encoder import SegmentedDocument
from engine.encoders.trainable import Embedded, TrainableEncoder, inference
from engine.errors import TrainingError


class FrozenFirstStage(TrainableEncoder):
    """An encoder whose first stage is computed once a document and never trained.

    Nearly all work of an encoder is its first stage, so a step costs a hundredth:
    the mode for machines without a GPU. States of every document met are kept in half
    precision, 2 H bytes a chunk. The weights that states are made by get no gradient from
    now on, and so stay as they are.
    """

    def __init__(self, encoder: TrainableEncoder) -> None:
        """Wrap an encoder with a trained second stage.

        Raises:
            TrainingError: it has no weights there.
        """
        if encoder.kind == "mean":
            raise _nothing_left(encoder)
        for weight in _first_stage(encoder):
            weight.requires_grad_(False)
        self._inner = encoder
        # By text, too: two corpora may use the same doc_id.
        self._states: dict[tuple[str, str], dict[Chunk, Tensor]] = {}
        self.kind = encoder.kind
        self.module = encoder.module
        self.name = encoder.name
        self.width = encoder.width
        self.device, self.reader = encoder.device, encoder.reader
        self.chunk_tokens = encoder.chunk_tokens

    @property
    def fingerprint(self) -> str:
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
            own = self._states.get(_key(document))
            if own is None or any(chunk not in own for chunk in document.chunks):
                own = self._read(document)
            found.append(torch.stack([own[chunk].float() for chunk in document.chunks]))
        return found

    def _read(self, document: SegmentedDocument) -> dict[Chunk, Tensor]:
        whole = self._inner.segment(document.document)
        with inference(self.module):
            states = self._inner.states([whole])[0].half()
        # Out of inference mode again, so that gradients may be recorded of what is made of them.
        own = dict(zip(whole.chunks, states.clone().unbind(), strict=True))
        self._states[_key(document)] = own
        return own

    def combine(self, documents: Sequence[SegmentedDocument], states: Sequence[Tensor]) -> Embedded:
        """As the encoder inside.

        Raises:
            TrainingError: gradients are recorded, but there is no weight that could get one.
        """
        embedded = self._inner.combine(documents, states)
        if torch.is_grad_enabled() and not embedded.documents.requires_grad:
            raise _nothing_left(self._inner)
        return embedded

    def save_pretrained(self, folder: Path, *, dtype: torch.dtype | None = None) -> None:
        """Save the encoder inside."""
        self._inner.save_pretrained(folder, dtype=dtype)


def _first_stage(encoder: TrainableEncoder) -> list[nn.Parameter]:
    """The weights that the state of a chunk depends on; some encoders use them in the second stage, too."""
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
