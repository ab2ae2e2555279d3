"""The encoder that training starts from: loaded or newly made, with the requested layers frozen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from engine.encoders.backbone.backbone import Backbone, Pooling
from engine.encoders.loading import DEFAULT_ENCODER, load_encoder
from engine.encoders.mean import MeanEncoder
from engine.encoders.tde.encoder import TdeEncoder
from engine.encoders.trainable import TrainableEncoder
from engine.errors import TrainingError
from engine.text.document import Document
from engine.training.tasks.frozen import FrozenFirstStage
from engine.training.tasks.text_pairs import pretrain_topics
from engine.training.tasks.views import sentences
from indexer.training.new_encoder import Made, NewEncoder, make_encoder

_TOPIC_SENTENCES = 20_000  # of a corpus, so that fitting topics takes minutes at most


@dataclass(frozen=True)
class Start:
    """The encoder that training starts from, and which of its parameters are frozen."""

    encoder: str = DEFAULT_ENCODER  # or the backbone of a new one
    new: NewEncoder | None = None
    pooling: Pooling | None = None  # of a mean encoder, in place of its own
    window_tokens: int | None = None  # of a mean encoder, in place of its own
    frozen_layers: int = 0  # of the backbone, from the bottom, with its embeddings
    frozen_first_stage: bool = False
    checkpoint_gradients: bool = False  # compute layers twice, to need less memory
    dropout: float | None = None  # in place of the encoder's own; 0 halves the time on a CPU

    def __post_init__(self) -> None:
        """Check the range.

        Raises:
            TrainingError: dropout is not in [0, 1).
        """
        if self.dropout is not None and not 0 <= self.dropout < 1:
            raise TrainingError(f"a dropout of {self.dropout} is no share of the values; give it from 0 to under 1")


def starting_encoder(
    start: Start,
    documents: Sequence[Document],
    *,
    seed: int,
    device: str | None,
    is_resumed: bool,
    log: Callable[[str], None],
) -> Made:
    """Load or make the encoder in float32.

    Args:
        start: the requested encoder.
        documents: for the topics of a new TDE.
        seed: of random parameters.
        device: as in `load_encoder`.
        is_resumed: all parameters will be loaded from a checkpoint, so topics are not fitted here.
        log: called with a line before a slow step.

    Raises:
        EncoderError: it cannot be loaded or made, or has fewer layers than are to be frozen.
        TrainingError: it has no parameters to train, or its kind does not support a setting of `start`.
    """
    made = _made(start, documents, seed=seed, device=device)
    encoder = made.encoder
    if start.new is not None and isinstance(encoder, TdeEncoder) and not is_resumed:
        _fit_topics(encoder, documents, epochs=start.new.topic_epochs, seed=seed, log=log)
    if start.dropout is not None:
        set_dropout(encoder.module, start.dropout)
    _take_faster_attention(encoder)
    if start.frozen_layers:
        _backbone(encoder, "has no layers that can be frozen one by one").freeze(start.frozen_layers)
    if start.checkpoint_gradients:
        _backbone(encoder, "cannot checkpoint gradients; train it with fewer group tokens").checkpoint_gradients(True)
    return Made(FrozenFirstStage(encoder) if start.frozen_first_stage else encoder, made.taken)


def _made(start: Start, documents: Sequence[Document], *, seed: int, device: str | None) -> Made:
    if start.new is not None:
        texts = (document.text for document in documents)
        return make_encoder(start.new, start.encoder, lambda: texts, seed=seed, device=device)
    encoder = load_encoder(start.encoder, device=device, dtype=torch.float32)
    if not isinstance(encoder, TrainableEncoder):
        raise TrainingError(f"{start.encoder} has no parameters that can be trained; name another encoder")
    if start.pooling is not None or start.window_tokens is not None:
        encoder = _repooled(encoder, start, device)
    return Made(encoder, "")


def _repooled(encoder: TrainableEncoder, start: Start, device: str | None) -> MeanEncoder:
    if not isinstance(encoder, MeanEncoder):
        raise TrainingError(f"an encoder of type {encoder.kind} has its own pooling and window; begin with a backbone")
    backbone = Backbone(
        encoder.backbone.folder, device=device, dtype=torch.float32, pooling=start.pooling or encoder.backbone.pooling
    )
    return MeanEncoder(backbone, name=start.encoder, window_tokens=start.window_tokens or encoder.window_tokens)


def set_dropout(module: nn.Module, share: float) -> None:
    """Set the share of values that every dropout layer of a module drops.

    Torch draws dropout in one thread: without it, a step of a six-layer BERT on two
    cores takes 0.71 s instead of 1.26 s.
    """
    for part in module.modules():
        if isinstance(part, nn.Dropout):
            part.p = share


def _take_faster_attention(encoder: TrainableEncoder) -> None:
    """Use unfused attention on a CPU: the gradient of torch's fused attention is slower (1.04 s, not 0.71 s)."""
    backbone = getattr(encoder, "backbone", None)
    if isinstance(backbone, Backbone) and backbone.device == "cpu" and backbone.model.config.model_type == "bert":
        backbone.model.set_attn_implementation("eager")


def _backbone(encoder: TrainableEncoder, lack: str) -> Backbone:
    backbone = getattr(encoder, "backbone", None)
    if not isinstance(backbone, Backbone):
        raise TrainingError(f"an encoder of type {encoder.kind} {lack}")
    return backbone


def _fit_topics(
    encoder: TdeEncoder, documents: Sequence[Document], *, epochs: int, seed: int, log: Callable[[str], None]
) -> None:
    if encoder.module.topics is None or not epochs:
        return
    texts = topic_texts(documents, seed=seed)
    log(f"topics: {epochs} epochs over {len(texts):,} documents and sentences")
    pretrain_topics(encoder, texts, epochs=epochs, seed=seed)


def topic_texts(documents: Sequence[Document], *, seed: int, most: int = _TOPIC_SENTENCES) -> list[str]:
    """Whole documents, and their sentences: all, or about `most` drawn, the same number from each document."""
    rng = np.random.default_rng(seed)
    each = max(1, most // max(len(documents), 1))
    texts = [document.text for document in documents]
    for document in documents:
        found = sentences(document)
        drawn = np.sort(rng.permutation(len(found))[:each])
        texts += [document.text[found[int(at)].start : found[int(at)].stop] for at in drawn]
    return texts
