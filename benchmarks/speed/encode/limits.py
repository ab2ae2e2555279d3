"""The matrix products of a BERT, and its operations for chunks of given lengths, from its configuration alone."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.measuring.timing import limited_threads
from benchmarks.speed.encode.ways import WARM_UP, Job, batches, first_chunks, segment_all
from benchmarks.speed.products import SQUARE, Shape
from engine.encoders.files import read_json
from engine.errors import EncoderError

# Models with four projections of attention and two of the feed-forward part a layer; others gate, or share.
_KINDS = ("bert", "camembert", "mpnet", "roberta", "xlm-roberta")
_TOKENS = 4096  # of a batch of longmatch's encoder
_FIELDS = ("num_hidden_layers", "hidden_size", "intermediate_size")


@dataclass(frozen=True)
class LayerSizes:
    """The sizes that the operations of a BERT depend on."""

    layers: int
    width: int  # H
    inner: int  # I, of the feed-forward part


def read_sizes(folder: Path) -> LayerSizes:
    """Read `config.json` of a backbone, whose layers must be those of a BERT: for others the formula is another."""
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
    """Floating-point operations of the products of a forward pass; a multiplication and an addition count as two.

    A chunk of L tokens, special ones counted, takes

        layers (8 L H^2 + 4 L H I + 4 L^2 H)

    for the query, key, value and output projections, for the two of the feed-forward
    part, and for the similarities and the weighted sum of attention. Embeddings,
    normalisation, activations, softmax and pooling are left out, and so is padding,
    which is not useful work.
    """
    width, inner = sizes.width, sizes.inner
    return sum(
        sizes.layers * (8 * length * width**2 + 4 * length * width * inner + 4 * length**2 * width)
        for length in lengths
    )


PRODUCTS, ATTENTION, GELU, NORMS = "linear layers", "attention", "GELU", "LayerNorm"
OTHER, OUTSIDE = "other operators", "outside of operators"
# By parts of the name of an operator; the first that fits. Where attention is no operator of its own, its products
# are those of batches of matrices. GELU that is applied while a product is written counts as that product.
_GROUPS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (ATTENTION, ("attention", "bmm", "softmax", "exp2")),
    (PRODUCTS, ("addmm", "::mm", "linear", "matmul")),
    (GELU, ("gelu",)),
    (NORMS, ("layer_norm",)),
)


def group_of(operator: str) -> str:
    """The group of an operator by its name, as aten::addmm."""
    return next((group for group, parts in _GROUPS if any(part in operator for part in parts)), OTHER)


def group_seconds(own_seconds: Iterable[tuple[str, float]], wall_seconds: float) -> dict[str, float]:
    """Seconds by group of operators; they sum to `wall_seconds`, of the whole.

    The time of each operator is its own, without that of operators that it calls; time outside of operators is
    Python, and copying between tensors and arrays.
    """
    seconds = dict.fromkeys([group for group, _ in _GROUPS] + [OTHER], 0.0)
    for operator, own in own_seconds:
        seconds[group_of(operator)] += own
    return {**seconds, OUTSIDE: max(0.0, wall_seconds - sum(seconds.values()))}


def profile_encoder(job: Job, n_chunks: int) -> dict[str, Any]:
    """`group_seconds` of encoding the first documents of a sample under torch's profiler, in a process of its own.

    One thread encodes, since the profiler records no other; where several encode batches side by side, each does the
    same. The profiler itself needs time, most where operators are short: read the shares, not the seconds.
    """
    from torch.profiler import ProfilerActivity, profile

    from engine.encoders.loading import load_trainable

    with limited_threads(1, width=job.config.width):
        encoder = load_trainable(job.config.encoder, device="cpu")
        segmented = first_chunks(segment_all(encoder, job.sample.dataset), n_chunks)
        encoder.encode_segmented(first_chunks(iter(segmented), WARM_UP))
        with profile(activities=[ProfilerActivity.CPU]) as profiled:
            started = time.perf_counter()
            for batch in batches(segmented):
                encoder.encode_segmented(batch)
            seconds = time.perf_counter() - started
    own = ((event.key, event.self_cpu_time_total / 1e6) for event in profiled.key_averages())
    return group_seconds(own, seconds)
