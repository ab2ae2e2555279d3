"""Sentences that many documents of a corpus have, word by word: licences, notices, headers. Pure functions of text.

A sentence that more than `MOST_DOCUMENTS` documents have is no evidence that two of them are similar.
Such sentences of a query are left out of its evidence: its terms are counted without them, and the
weight of a chunk is reduced by the share of its text that is in them. A target is compared as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import xxhash
from numpy.typing import NDArray

from engine.text.segmentation import sentence_starts
from engine.text.spans import Span

MOST_DOCUMENTS = 8  # documents that share a sentence which still counts; as many as `Scoring.exceeding`
FEWEST_CHARS = 20  # of a sentence that can be common, without blanks
LEAST_LEFT = 0.2  # share of a query that must remain; if less would, nothing is left out


def common_sentences(texts: Iterable[str]) -> NDArray[np.uint64]:
    """The keys of sentences that more than `MOST_DOCUMENTS` of the texts have, rising."""
    keys = [np.unique(np.array([key for _, key in _sentences(text)], np.uint64)) for text in texts]
    found, counts = np.unique(np.concatenate(keys) if keys else np.empty(0, np.uint64), return_counts=True)
    return found[counts > MOST_DOCUMENTS]


def common_stretches(text: str, common: NDArray[np.uint64]) -> list[Span]:
    """The spans of common sentences in a query, in reading order; none if hardly any other text would remain.

    Args:
        text: of the query.
        common: keys from `common_sentences`.
    """
    if not len(common):
        return []
    sentences = _sentences(text)
    is_common = np.isin(np.array([key for _, key in sentences], np.uint64), common)
    found = [span for (span, _), one in zip(sentences, is_common.tolist(), strict=True) if one]
    n_chars = sum(span.stop - span.start for span in found)
    return found if n_chars <= (1 - LEAST_LEFT) * len(text) else []


def blanked(text: str, stretches: Sequence[Span]) -> str:
    """The text with blanks in place of some stretches, so that offsets do not change."""
    pieces, at = [], 0
    for span in stretches:
        pieces += [text[at : span.start], " " * (span.stop - span.start)]
        at = span.stop
    return "".join([*pieces, text[at:]])


def kept_shares(stretches: Sequence[Span], spans: Sequence[Span]) -> NDArray[np.float64]:
    """The share (I,) of the characters of each of I spans that is outside of some stretches, in [0, 1]."""
    starts = np.array([span.start for span in stretches], np.int64)
    stops = np.array([span.stop for span in stretches], np.int64)
    shares = np.ones(len(spans))
    for number, span in enumerate(spans) if len(stretches) else ():
        inside = np.minimum(stops, span.stop) - np.maximum(starts, span.start)
        shares[number] -= np.maximum(inside, 0).sum() / max(1, span.stop - span.start)
    return np.clip(shares, 0, 1)


def _sentences(text: str) -> list[tuple[Span, int]]:
    """The sentences that can be common, each with a key that does not depend on its case and line breaks."""
    starts = sentence_starts(text)
    found = []
    for start, stop in zip(starts, [*starts[1:], len(text)], strict=True):
        words = text[start:stop].casefold().split()
        if sum(map(len, words)) >= FEWEST_CHARS:
            found.append((Span(start, stop), xxhash.xxh3_64_intdigest(" ".join(words).encode())))
    return found
