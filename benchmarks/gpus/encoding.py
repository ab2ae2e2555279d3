"""How many tokens a second are encoded, beside what the layers would cost at the peak.

Letters in shapes: B sequences of a batch, L tokens of each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.encoding.flops import LayerSizes, chunk_flops
from benchmarks.gpus.machine import seconds_of
from benchmarks.gpus.record import Encoded, Peak
from benchmarks.packages import require
from engine.document import Document
from engine.encoders.backbone import Backbone
from engine.encoders.mean import MeanEncoder
from engine.encoders.trainable import inference

ALONE = "longmatch, layers alone"
WHOLE = "longmatch encode"
FROM_TEXT = "longmatch tokenize + encode"
TEXTS = "chunks of the demo"
PEERS = {"float32": "sentence-transformers encode, defaults", "bfloat16": "sentence-transformers encode, bfloat16"}
_MEDIAN_TOKENS, _SPREAD = 102, 0.57  # of mixed lengths: log-normal, 120 on average


def operations_per_token(config: Any, length: float) -> float | None:  # noqa: ANN401
    """Floating-point operations of the layers of a BERT-like model for a token of a sequence, see `chunk_flops`.

    Args:
        config: of transformers.
        length: L; with sequences of several lengths, their mean weighted by tokens.

    Returns:
        None for a model that does not say how large it is in these words.
    """
    names = ("num_hidden_layers", "hidden_size", "intermediate_size")
    if not all(hasattr(config, name) for name in names):
        return None
    sizes = LayerSizes(*(getattr(config, name) for name in names))
    return chunk_flops(sizes, [length]) / length


def drawn_sequences(backbone: Backbone, lengths: Sequence[int], seed: int) -> list[list[int]]:
    """Random token ids, without special tokens."""
    rng = np.random.default_rng(seed)
    n_tokens = len(backbone.model.get_input_embeddings().weight)
    return [rng.integers(n_tokens // 10, n_tokens, length).tolist() for length in lengths]


def mixed_lengths(n: int, longest: int, seed: int) -> list[int]:
    """Log-normal numbers from 1 on, as chunks of whole sentences have them."""
    drawn = _MEDIAN_TOKENS * np.exp(_SPREAD * np.random.default_rng(seed).standard_normal(n))
    lengths: list[int] = np.clip(drawn.astype(int), 1, longest).tolist()
    return lengths


def measure_sequences(
    backbone: Backbone, what: str, sequences: Sequence[Sequence[int]], budgets: Sequence[int], peak: Peak | None
) -> list[Encoded]:
    """Encode sequences under one token budget after another, as indexing does."""
    lengths = np.array([len(one) + backbone.tokenizer.n_special for one in sequences])
    points = []
    for budget in budgets:
        seconds = seconds_of(lambda budget=budget: backbone.encode(sequences, budget), backbone.device)  # type: ignore[misc]
        points.append(_point(backbone, what, WHOLE, budget, lengths, seconds, peak))
    return points


def measure_layers(backbone: Backbone, length: int, budgets: Sequence[int], peak: Peak | None) -> list[Encoded]:
    """Run batches that lie on the device already: what is left once padding, copying and Python cost nothing."""
    points = []
    n_tokens = len(backbone.model.get_input_embeddings().weight)
    for budget in budgets:
        n = max(1, budget // length)
        ids = torch.randint(n_tokens // 10, n_tokens, (n, length), device=backbone.device)  # (B, L)
        mask = torch.ones((n, length), dtype=torch.bool)

        def run(ids: torch.Tensor = ids, mask: torch.Tensor = mask) -> None:
            backbone.hidden_states(ids, mask)

        with inference(backbone.model):
            seconds = seconds_of(run, backbone.device)
        points.append(_point(backbone, f"{length} tokens", ALONE, budget, np.full(n, length), seconds, peak))
    return points


def chunk_texts(encoder: MeanEncoder, documents: Sequence[Document]) -> list[str]:
    """The text of each chunk of documents."""
    segmented = [encoder.segment(document) for document in documents]
    return [one.document.text[chunk.start : chunk.stop] for one in segmented for chunk in one.chunks]


def measure_texts(encoder: MeanEncoder, texts: Sequence[str], token_budget: int, peak: Peak | None) -> list[Encoded]:
    """Tokenize and encode texts that no window cuts."""
    backbone = encoder.backbone

    def run() -> None:
        backbone.encode([ids for ids, _ in backbone.tokenize(texts)], token_budget)

    seconds = seconds_of(run, encoder.device)
    return [_point(backbone, TEXTS, FROM_TEXT, token_budget, _lengths(backbone, texts), seconds, peak)]


def measure_peers(encoder: MeanEncoder, texts: Sequence[str], peak: Peak | None) -> list[Encoded]:
    """Let sentence-transformers encode the same texts with the same weights, in each precision of `PEERS`.

    Raises:
        MissingExtra: it is not installed.
    """
    require("the encoder of sentence-transformers", {"sentence_transformers": "sentence-transformers"}, "peers")
    lengths, points = _lengths(encoder.backbone, texts), []
    for dtype, system in PEERS.items():
        peer = _sentence_transformer(encoder, dtype)

        def run(peer: Any = peer) -> None:  # noqa: ANN401
            peer.encode(list(texts), show_progress_bar=False)

        seconds = seconds_of(run, encoder.device)
        points.append(_point(encoder.backbone, TEXTS, system, None, lengths, seconds, peak, dtype))
    return points


def _lengths(backbone: Backbone, texts: Sequence[str]) -> NDArray[np.int64]:
    return np.array([len(ids) + backbone.tokenizer.n_special for ids, _ in backbone.tokenize(texts)])


def _sentence_transformer(encoder: MeanEncoder, dtype: str) -> Any:  # noqa: ANN401
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Normalize, Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling

    backbone = encoder.backbone
    arguments = {"use_safetensors": True, "dtype": dtype, "local_files_only": True}
    first = Transformer(str(backbone.folder), model_kwargs=arguments, processor_kwargs={"local_files_only": True})
    first.max_seq_length = backbone.max_tokens + backbone.tokenizer.n_special
    pooling = Pooling(first.get_embedding_dimension(), str(backbone.pooling))
    return SentenceTransformer(modules=[first, pooling, Normalize()], device=encoder.device)


def _point(
    backbone: Backbone,
    what: str,
    system: str,
    budget: int | None,
    lengths: NDArray[np.int64],
    seconds: float,
    peak: Peak | None,
    dtype: str = "",
) -> Encoded:
    n_tokens = int(lengths.sum())
    speed = n_tokens / seconds
    cost = operations_per_token(backbone.model.config, float((lengths**2).sum() / n_tokens))
    most = None if peak is None else getattr(peak, dtype or str(backbone.dtype).removeprefix("torch."), None)
    share = speed * cost / (most * 1e12) if cost and most else math.nan
    return Encoded(what, system, budget, len(lengths), round(speed, 1), None if math.isnan(share) else round(share, 4))
