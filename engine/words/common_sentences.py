"""Sentences that many documents of a corpus have, word by word: licences, notices, headers. Pure functions of text.

A sentence that more than `MOST_DOCUMENTS` documents have is no evidence that two of them are similar.
Such sentences of a query are left out of its evidence: its terms are counted without them, and the
weight of a chunk is reduced by the share of its text that is in them. A target is compared as a whole.

Stock sentences are those that many documents have in about the same words: "the key words MUST and MUST NOT in this
document", "it will be apparent to those skilled in the art". They count as any other, and are never shown first. A
sentence is stock if `LEAST_STOCK` of its words are in runs of `RUN` words that many documents of the reference have.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import xxhash
from numpy.typing import NDArray

from engine.text.segmentation import Span, sentence_starts
from engine.words.languages import UNSPACED

MOST_DOCUMENTS = 8  # documents that share a sentence which still counts; as many as `Scoring.exceeding`
FEWEST_CHARS = 20  # of a sentence that can be common, without blanks
LEAST_LEFT = 0.2  # share of a query that must remain; if less would, nothing is left out
RUN = 4  # words in a run
LEAST_STOCK = 2 / 3  # share of the words of a stock sentence that are in runs of many documents
FEWEST_WITH_RUN = 5  # documents that have such a run, and a twentieth of those compared
_MOST_CHARACTERS = 200_000  # of a document that are compared: the begin and the end of a longer one
_WORD = re.compile(rf"[{UNSPACED}]{{1,2}}|[^\W\d_{UNSPACED}]+")
_MIX = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True, eq=False)
class StockWording:
    """The runs of words that many documents of a reference have."""

    keys: NDArray[np.uint64]  # (K,) hashes, rising
    counts: NDArray[np.int64]  # (K,) documents with each
    n_documents: int  # compared


@dataclass(frozen=True, slots=True)
class StockSentence:
    """A sentence in the words of many documents."""

    span: Span
    n_documents: int  # that have its wording: the median of its runs
    n_compared: int


def common_sentences(texts: Iterable[str]) -> NDArray[np.uint64]:
    """The keys of sentences that more than `MOST_DOCUMENTS` of the texts have, rising."""
    keys = [np.unique(np.array([key for _, key in _sentences(text)], np.uint64)) for text in texts]
    found, counts = np.unique(np.concatenate(keys) if keys else np.empty(0, np.uint64), return_counts=True)
    return found[counts > MOST_DOCUMENTS]


def common_stretches(text: str, common: NDArray[np.uint64]) -> list[Span]:
    """The spans of common sentences in a query, in reading order; none if hardly any other text would remain."""
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


def stock_wording(texts: Iterable[str]) -> StockWording:
    """The runs of words that at least `FEWEST_WITH_RUN` documents, and a twentieth of all, have."""
    keys = [np.unique(_runs(_ends(text))[0]) for text in texts]
    found, counts = np.unique(np.concatenate(keys) if keys else np.empty(0, np.uint64), return_counts=True)
    is_stock = counts >= max(FEWEST_WITH_RUN, len(keys) / 20)
    return StockWording(found[is_stock], counts[is_stock], len(keys))


@lru_cache(maxsize=4)
def stock_sentences(text: str, wording: StockWording) -> tuple[StockSentence, ...]:
    """The stock sentences of a query, in reading order; none if hardly any other text would remain."""
    runs, starts = _runs(text)
    at = np.minimum(np.searchsorted(wording.keys, runs), max(0, len(wording.keys) - 1))
    if not len(runs) or not len(wording.keys) or not (is_common := wording.keys[at] == runs).any():
        return ()
    edges = np.array([*sentence_starts(text), len(text)])
    first, last = np.searchsorted(starts, edges[:-1]), np.searchsorted(starts, edges[1:])
    found = []
    places = np.searchsorted(edges, starts[: len(runs)][is_common], side="right") - 1
    for place in sorted(set(places.tolist())):  # `np.unique` loads masked arrays
        begin, stop = int(first[place]), int(last[place])
        common = begin + np.flatnonzero(is_common[begin : max(begin, stop - RUN + 1)])
        n_words = len(set((common[:, None] + np.arange(RUN)).ravel().tolist()))
        if len(common) and n_words >= LEAST_STOCK * (stop - begin):
            n_documents = int(np.median(wording.counts[at[common]]))
            found.append(StockSentence(Span(*edges[place : place + 2].tolist()), n_documents, wording.n_documents))
    n_characters = sum(one.span.stop - one.span.start for one in found)
    return tuple(found) if n_characters <= (1 - LEAST_LEFT) * len(text) else ()


def _ends(text: str) -> str:
    """A text without the middle of a very long one, where stock sentences hardly stand."""
    half = _MOST_CHARACTERS // 2
    return text if len(text) <= 2 * half else f"{text[:half]}\n\n{text[-half:]}"


def _runs(text: str) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """A key of each run of words, without case and numbers, and where each word starts: (n - RUN + 1,) and (n,)."""
    words = [(match.start(), _key(match[0].lower())) for match in _WORD.finditer(text)]
    starts, hashes = np.array([start for start, _ in words], np.int64), np.array([key for _, key in words], np.uint64)
    runs = np.zeros(max(0, len(words) - RUN + 1), np.uint64)
    with np.errstate(over="ignore"):
        for step in range(RUN):
            runs = runs * _MIX + hashes[step : step + len(runs)]
    return runs, starts


@lru_cache(maxsize=1 << 16)
def _key(word: str) -> int:
    return xxhash.xxh3_64_intdigest(word.encode())


def _sentences(text: str) -> list[tuple[Span, int]]:
    """The sentences that can be common, each with a key that does not depend on its case and line breaks."""
    starts = sentence_starts(text)
    found = []
    for start, stop in zip(starts, [*starts[1:], len(text)], strict=True):
        words = text[start:stop].casefold().split()
        if sum(map(len, words)) >= FEWEST_CHARS:
            found.append((Span(start, stop), xxhash.xxh3_64_intdigest(" ".join(words).encode())))
    return found
