"""The limits of a run on memory, disk and GPU, the batch sizes that follow from them, and the speed of an encoder.

When memory is short, a run first makes smaller batches; then it falls back to a smaller type of FAISS index, see
`indexer.generation.resources`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from engine.encoders.encoder import Encoder, SegmentedDocument
from engine.errors import BudgetExceeded
from engine.text.segmentation import Coverage
from indexer.building.pipeline import BATCH_CHARS, LOOKUP_BATCHES
from indexer.generation.resources import Footprint

SMALLEST_CHARS = 1 << 15  # of a batch
CHARS_PER_CHUNK = 380.0  # of the demo corpus, in chunks of 126 tokens

# Measured on the demo corpus: text, chunks and token ids of a segmented document.
_SEGMENTED_BYTES = 3.2  # for each character
_BATCHES_SEGMENTED = 2  # batches in memory: one is filled, one is encoded
_TEXT_BYTES = 2  # for each character in most scripts; 1 in Latin-1
# For each number of a chunk's row: the hidden state and its vector in float32; float16 twice while a shard is written.
_ENCODED_BYTES = 12


def left_beside(memory_bytes: int | None, footprint: Footprint) -> int | None:
    """Memory that the process can still take; None without a limit."""
    return None if memory_bytes is None else memory_bytes - footprint.own_bytes()


def batch_bytes(batch_chars: int, width: int, chars_per_chunk: float = CHARS_PER_CHUNK) -> int:
    """Memory of the documents that are read, segmented and encoded at one time, with a mean number of characters."""
    encoded = _ENCODED_BYTES * width / chars_per_chunk
    return round(batch_chars * (_BATCHES_SEGMENTED * _SEGMENTED_BYTES + encoded + LOOKUP_BATCHES * _TEXT_BYTES))


def fit_batches(left_bytes: int | None, width: int, chars_per_chunk: float = CHARS_PER_CHUNK) -> int:
    """Characters of the largest batches, up to the usual, that leave half of the memory to the index.

    Returns:
        `SMALLEST_CHARS` at least, even if it does not fit; see `refuse_memory`.
    """
    batch_chars = BATCH_CHARS
    while left_bytes is not None and batch_chars > SMALLEST_CHARS:
        if 2 * batch_bytes(batch_chars, width, chars_per_chunk) <= left_bytes:
            break
        batch_chars //= 2
    return batch_chars


def refuse_memory(memory_bytes: int | None, held_bytes: int, width: int, *, has_encoded: bool = False) -> None:
    """Raise `BudgetExceeded` if memory does not hold program and encoder (`held_bytes`) and the smallest batches.

    With `has_encoded`, `held_bytes` includes the memory for encoding.
    """
    smallest = held_bytes + batch_bytes(SMALLEST_CHARS, width)
    if memory_bytes is not None and smallest > memory_bytes:
        beside = "" if has_encoded else " and room to encode, see longmatch index --dry-run"
        raise BudgetExceeded(
            f"program and encoder take {held_bytes / 1e6:,.0f} MB, with the smallest batches "
            f"{smallest / 1e6:,.0f} MB; --memory allows {memory_bytes / 1e6:,.0f} MB: "
            f"allow at least {-(-smallest // 1_000_000)}M{beside}, or take a smaller --encoder"
        )


def is_on_gpu(encoder: Encoder) -> bool:
    """Whether an encoder works on a GPU."""
    return encoder.device.startswith("cuda")


def peak_vram(encoder: Encoder) -> int:
    """The most bytes that torch held on the encoder's GPU since `forget_peak`, parameters included."""
    import torch

    return int(torch.cuda.max_memory_reserved(encoder.device))


def forget_peak(encoder: Encoder) -> None:
    """Reset the peak to the memory that is held now."""
    import torch

    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats(encoder.device)


@contextmanager
def limited_vram(encoder: Encoder | None, vram_bytes: int | None) -> Iterator[None]:
    """Limit the memory of torch on the encoder's GPU inside the context, if there is one.

    A batch beyond the limit fails with an out-of-memory error and is made smaller; see
    `engine.encoders.hardware.BatchReader`. Memory of the driver itself is not counted.

    Raises:
        BudgetExceeded: not even the parameters fit.
    """
    if encoder is None or vram_bytes is None or not is_on_gpu(encoder):
        yield
        return
    import torch

    weights = encoder.weights_bytes
    if weights >= vram_bytes:
        raise BudgetExceeded(
            f"the parameters of {encoder.name} take {weights / 1e6:,.0f} MB, --vram allows {vram_bytes / 1e6:,.0f} MB; "
            f"allow more than {-(-weights // 1_000_000):,}M, take a smaller --encoder, or use --device cpu"
        )
    total = torch.cuda.get_device_properties(encoder.device).total_memory
    torch.cuda.set_per_process_memory_fraction(min(1.0, vram_bytes / total), encoder.device)
    try:
        yield
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0, encoder.device)


_DOCUMENT_TOKENS = 4096  # of one document, so that a long document is not the whole measurement
_GROUP_TOKENS = (8192, 32768)  # encoded in one call
_ENOUGH_SECONDS = 2.0  # after a group that takes longer, no larger group is encoded


def tokens_per_second(documents: Sequence[SegmentedDocument], encoder: Encoder) -> float:
    """Encode the first of the kept documents, then more of them, and time the larger group.

    Chunks of many documents are more alike in length than those of few, so a group is read
    faster the larger it is, and a run reads larger ones still.
    """
    encoder.encode_segmented([_cut(documents[0], 512)])
    cut = [_cut(document) for document in documents]
    ends = np.cumsum([document.coverage.tokens_read for document in cut])
    for most_tokens in _GROUP_TOKENS:
        n = min(len(cut), 1 + int(np.searchsorted(ends, most_tokens)))
        started = time.perf_counter()
        encoder.encode_segmented(cut[:n])
        seconds = max(time.perf_counter() - started, 1e-9)
        if n == len(cut) or seconds > _ENOUGH_SECONDS:
            break
    return float(ends[n - 1] / seconds)


def _cut(document: SegmentedDocument, most_tokens: int = _DOCUMENT_TOKENS) -> SegmentedDocument:
    """A document with only its first chunks, at least one."""
    ends = np.cumsum([chunk.n_tokens for chunk in document.chunks])
    n = max(1, int(np.searchsorted(ends, most_tokens, side="right")))
    n_tokens = int(ends[n - 1])
    coverage = Coverage(n_tokens, n_tokens)
    return replace(document, chunks=document.chunks[:n], token_ids=document.token_ids[:n], coverage=coverage)
