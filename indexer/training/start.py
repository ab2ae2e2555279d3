"""The encoder that training starts from: loaded or newly made, with the requested layers frozen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from engine.document import Document
from engine.encoders.backbone.backbone import Backbone, Pooling
from engine.encoders.loading import DEFAULT_ENCODER, load_encoder
from engine.encoders.mean import MeanEncoder
from engine.encoders.tde.encoder import TdeEncoder
from engine.encoders.trainable import TrainableEncoder
from engine.errors import TrainingError
from engine.training.tasks.frozen import FrozenFirstStage
from engine.training.tasks.text_pairs import pretrain_topics
from engine.training.tasks.views import sentences
from indexer.training.new_encoder import Made, NewEncoder, make_encoder

_TOPIC_SENTENCES = 20_000  # of a corpus, so that fitting topics takes minutes at most


@dataclass(frozen=True)
class Start:
    """What training starts from, and what of it stays as it is."""

    encoder: str = DEFAULT_ENCODER  # or the backbone of a new one
    new: NewEncoder | None = None
    pooling: Pooling | None = None  # of a mean encoder, in place of its own
    window_tokens: int | None = None  # likewise
    frozen_layers: int = 0  # of the backbone, from the bottom, with its embeddings
    frozen_first_stage: bool = False
    checkpoint_gradients: bool = False  # layers are computed twice, and less memory is needed
    dropout: float | None = None  # in place of what the weights were trained with; 0 halves the time on a CPU

    def __post_init__(self) -> None:
        """Check the range.

        Raises:
            TrainingError: dropout is no share.
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
        start: what is asked for.
        documents: of a new TDE's topics.
        seed: of random weights.
        device: as in `load_encoder`.
        is_resumed: all weights will be those of a checkpoint, so none has to be fitted here.
        log: hears of what takes long.

    Raises:
        EncoderError: it cannot be loaded or made, or has fewer layers than are to be frozen.
        TrainingError: it has no weights to train, or none of the kind that is asked for.
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
    """Let every dropout of a module drop this share of its values.

    Torch draws them in one thread: with none to draw, a step of a six-layer BERT on
    two cores takes .71 s in place of 1.26 s.
    """
    for part in module.modules():
        if isinstance(part, nn.Dropout):
            part.p = share


def _take_faster_attention(encoder: TrainableEncoder) -> None:
    """On a CPU the plain products: the gradient of torch's fused ones takes half as long again (1.04 s for .71 s)."""
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
    """Whole documents, and sentences of them: all, or `most` drawn, the same number of each document."""
    rng = np.random.default_rng(seed)
    each = max(1, most // max(len(documents), 1))
    texts = [document.text for document in documents]
    for document in documents:
        found = sentences(document)
        drawn = np.sort(rng.permutation(len(found))[:each])
        texts += [document.text[found[int(at)].start : found[int(at)].stop] for at in drawn]
    return texts
