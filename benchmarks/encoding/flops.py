"""What a BERT multiplies, and how many operations chunks of given lengths take, from its configuration alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.measuring.products import SQUARE, Shape
from engine.encoders.description import read_json
from engine.errors import EncoderError

# Four projections of attention and two of the feed-forward part a layer; others gate, or share.
_KINDS = ("bert", "camembert", "mpnet", "roberta", "xlm-roberta")
_TOKENS = 4096  # of a batch of ours
_FIELDS = ("num_hidden_layers", "hidden_size", "intermediate_size")


@dataclass(frozen=True)
class LayerSizes:
    """What the work of a BERT depends on."""

    layers: int
    width: int  # H
    inner: int  # I, of the feed-forward part


def read_sizes(folder: Path) -> LayerSizes:
    """Read `config.json` of a backbone.

    Raises:
        EncoderError: its layers are not those of a BERT, so that the formula would be another.
    """
    config: Any = read_json(folder / "config.json")
    kind = config.get("model_type")
    if kind not in _KINDS or not all(isinstance(config.get(field), int) for field in _FIELDS):
        raise EncoderError(
            f"{folder} is a {kind!r}, operations are counted for {', '.join(_KINDS)}; name an encoder over one of them"
        )
    return LayerSizes(*(config[field] for field in _FIELDS))


def encoder_shapes(sizes: LayerSizes) -> list[Shape]:
    """The products of an encoder's linear layers over a batch, and a square one."""
    width, inner = sizes.width, sizes.inner
    return [Shape(_TOKENS, width, width), Shape(_TOKENS, width, inner), Shape(_TOKENS, inner, width), SQUARE]


def chunk_flops(sizes: LayerSizes, lengths: Iterable[float]) -> float:
    """Floating-point operations of the products of a forward pass, a multiplication and an addition being two.

    A chunk of L tokens, special ones counted, takes

        layers (8 L H^2 + 4 L H I + 4 L^2 H)

    for the query, key, value and output projections, for the two of the feed-forward
    part, and for the similarities and the weighted sum of attention. Embeddings,
    normalisation, activations, softmax and pooling are left out, and so is padding:
    it is work that nobody asked for.

    Args:
        sizes: of the model.
        lengths: L of each chunk.
    """
    width, inner = sizes.width, sizes.inner
    return sum(
        sizes.layers * (8 * length * width**2 + 4 * length * width * inner + 4 * length**2 * width)
        for length in lengths
    )
