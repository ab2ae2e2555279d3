"""Measures how fast an encoder reads documents on this machine. Stores nothing."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from engine.encoders.encoder import Encoder, SegmentedDocument
from engine.text.spans import Coverage

_DOCUMENT_TOKENS = 4096  # of one document, so that a long document is not the whole measurement
_GROUP_TOKENS = (8192, 32768)  # encoded in one call
_ENOUGH_SECONDS = 2.0  # after a group that takes longer, no larger group is encoded


def tokens_per_second(kept: Sequence[SegmentedDocument], encoder: Encoder) -> float:
    """Encode the first of the kept documents, then more of them, and time the larger group.

    Chunks of many documents are more alike in length than those of few, so a group is read
    faster the larger it is, and a run reads larger ones still.
    """
    encoder.encode_segmented([_cut(kept[0], 512)])
    cut = [_cut(document) for document in kept]
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
