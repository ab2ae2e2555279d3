"""Samplers of two views of one document, which unsupervised training uses as documents that belong together.

Views are documents, so any encoder can read them. Lengths are counted in words,
which are a little longer than the tokens that the papers count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate
from types import MappingProxyType
from typing import Protocol

import numpy as np

from engine.text.document import Document
from engine.text.spans import Span
from engine.training.tasks.views import keep, n_words, sentences, words

_REDRAWS = 100


class PairSampler(Protocol):
    """Draws two views of a document, or of a window of one that is too long to be read."""

    @property
    def room(self) -> int:
        """Maximum length of the text that both views are drawn from, in lengths of a view.

        2 where the views divide the text between them, 1 where one view may be all of it.
        """

    def views(self, document: Document, rng: np.random.Generator) -> tuple[Document, Document]:
        """Draw two views.

        Args:
            document: of any length.
            rng: the only source of randomness.

        Returns:
            Two documents, each with a word if `document` has any. A document that is too
            small for the method is returned twice; only dropout makes its vectors differ.
        """


class Sampling(StrEnum):
    """The samplers by name; see `SAMPLERS`."""

    DOCSPLIT = "docsplit"
    CROP_HALF = "crop_half"
    CONTRIEVER = "contriever"
    ICT = "ict"
    SIMCSE = "simcse"
    CT = "ct"


@dataclass(frozen=True, slots=True)
class DocSplit:
    """Each sentence goes to one of two views by a fair coin, in order.

    DocSplit (EMNLP 2023 Findings, "DocSplit: Simple Contrastive Pretraining for Large
    Document Embeddings", section 2.2). A split that is too uneven is drawn again.
    """

    min_sentences: int = 4  # a document with fewer is too small
    min_share: float = 0.1  # of the words, in each view
    room: int = 2

    def views(self, document: Document, rng: np.random.Generator) -> tuple[Document, Document]:
        """See `PairSampler.views`."""
        found = sentences(document)
        if len(found) < self.min_sentences:
            return document, document
        sizes = np.array([n_words(document, sentence) for sentence in found])
        for _ in range(_REDRAWS):  # one very long sentence can make every draw uneven
            heads = rng.random(len(found)) < 0.5
            share = sizes[heads].sum() / sizes.sum()
            if self.min_share <= share <= 1 - self.min_share:
                one = [sentence for sentence, head in zip(found, heads, strict=True) if head]
                other = [sentence for sentence, head in zip(found, heads, strict=True) if not head]
                return keep(document, one), keep(document, other)
        return document, document


@dataclass(frozen=True, slots=True)
class CropHalf:
    """The first half and the second, as DocSplit's section 3.1 describes Contriever.

    The cut is the end of the sentence that is nearest to the middle; a single sentence is
    cut between words.
    """

    room: int = 2

    def views(self, document: Document, rng: np.random.Generator) -> tuple[Document, Document]:
        """See `PairSampler.views`; nothing is random."""
        pieces = sentences(document)
        if len(pieces) < 2:
            pieces = words(document)
        if len(pieces) < 2:
            return document, document
        before = list(accumulate(n_words(document, piece) for piece in pieces))
        first = min(range(1, len(pieces)), key=lambda number: abs(2 * before[number - 1] - before[-1]))
        cut = pieces[first].start
        return keep(document, [Span(0, cut)]), keep(document, [Span(cut, len(document.text))])


@dataclass(frozen=True, slots=True)
class IndependentCrops:
    """Two crops of one stretch, drawn independently, with words deleted.

    Contriever (Izacard et al. 2022, arXiv:2112.09118) as in its code:
    lengths are uniform in `min_share` to `max_share` of the stretch, positions are uniform,
    and crops may overlap.
    """

    chunk_words: int = 256  # the code takes 256 tokens
    min_share: float = 0.1
    max_share: float = 0.5
    deletion: float = 0.1  # probability that a word is deleted
    room: int = 2  # no crop is longer than half of its stretch

    def views(self, document: Document, rng: np.random.Generator) -> tuple[Document, Document]:
        """See `PairSampler.views`."""
        every = words(document)
        if not every:
            return document, document
        first = int(rng.integers(max(1, len(every) - self.chunk_words + 1)))
        chunk = every[first : first + self.chunk_words]
        return keep(document, self._crop(chunk, rng)), keep(document, self._crop(chunk, rng))

    def _crop(self, chunk: list[Span], rng: np.random.Generator) -> list[Span]:
        length = max(1, int(len(chunk) * rng.uniform(self.min_share, self.max_share)))
        first = int(rng.integers(len(chunk) - length + 1))
        crop = chunk[first : first + length]
        left = [word for word, fate in zip(crop, rng.random(length), strict=True) if fate >= self.deletion]
        return left or crop[:1]


@dataclass(frozen=True, slots=True)
class InverseCloze:
    """Some consecutive sentences, and the rest of the document.

    The inverse cloze task (Lee et al. 2019, arXiv:1906.00300, section 4) with spans of one
    sentence or more. DocSplit's section 3.1 calls the rest a negative; it is the positive.
    """

    max_share: float = 0.2  # of the words, in a span of several sentences
    kept: float = 0.1  # probability that the span stays in the rest
    room: int = 1  # the rest is nearly all of the text

    def views(self, document: Document, rng: np.random.Generator) -> tuple[Document, Document]:
        """See `PairSampler.views`."""
        found = sentences(document)
        if len(found) < 2:
            return document, document
        sizes = [n_words(document, sentence) for sentence in found]
        wanted = rng.uniform(0, self.max_share) * sum(sizes)
        first = int(rng.integers(len(found)))
        stop = first + 1
        while stop < len(found) and sum(sizes[first : stop + 1]) <= wanted:
            stop += 1
        span = keep(document, found[first:stop])
        if rng.random() < self.kept:
            return span, document
        return span, keep(document, found[:first] + found[stop:])


@dataclass(frozen=True, slots=True)
class SameTwice:
    """The document, twice: its vectors differ by dropout in SimCSE, by the second encoder in Contrastive Tension."""

    room: int = 1

    def views(self, document: Document, rng: np.random.Generator) -> tuple[Document, Document]:
        """See `PairSampler.views`; nothing is random."""
        return document, document


SAMPLERS: Mapping[Sampling, PairSampler] = MappingProxyType(
    {
        Sampling.DOCSPLIT: DocSplit(),
        Sampling.CROP_HALF: CropHalf(),
        Sampling.CONTRIEVER: IndependentCrops(),
        Sampling.ICT: InverseCloze(),
        Sampling.SIMCSE: SameTwice(),
        Sampling.CT: SameTwice(),
    }
)
