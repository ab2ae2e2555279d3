"""Two views of one document, which unsupervised training uses as documents that belong together. Encodes nothing.

Views are documents, so any encoder can read them. Lengths are counted in words, which are a little longer than the
tokens that the papers count.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, replace
from enum import StrEnum
from itertools import accumulate, pairwise
from typing import TypeAlias, TypeVar

import numpy as np

from engine.encoders.encoder import Encoder, SegmentedDocument
from engine.errors import DocumentError, TrainingError
from engine.text.document import Document
from engine.text.segmentation import Section, Span, sentence_starts
from engine.training.task import epoch_slice, step_generator

_WORD = re.compile(r"\S+")


def sentences(document: Document) -> list[Span]:
    """Sentences that hold a word, each with the white space after it, in order; none runs over a section's end."""
    spans = []
    for section in document.sections:
        text = document.text[section.start : section.stop]
        borders = [section.start + start for start in sentence_starts(text)] + [section.stop]
        spans += [Span(start, stop) for start, stop in pairwise(borders)]
    return [span for span in spans if n_words(document, span)]


def words(document: Document) -> list[Span]:
    """Words, as white space divides them, each with the space after it; the first with what is before it too."""
    starts = [match.start() for match in _WORD.finditer(document.text)]
    if not starts:
        return []
    return [Span(start, stop) for start, stop in pairwise([0, *starts[1:], len(document.text)])]


def n_words(document: Document, span: Span) -> int:
    """Number of words that begin in a span; used for tokens where there is no tokenizer."""
    return len(_WORD.findall(document.text, span.start, span.stop))


def keep(document: Document, spans: Sequence[Span]) -> Document:
    """Reduce a document to some spans.

    Each section keeps its heading and the kept part of its text; a section without text is
    dropped. Pages are dropped, since they point into the whole text.
    """
    text: list[str] = []
    sections: list[Section] = []
    size = 0
    starts, stops = [span.start for span in spans], [span.stop for span in spans]
    for section in document.sections:
        touching = spans[bisect_right(stops, section.start) : bisect_left(starts, section.stop)]
        inside = [document.text[max(span.start, section.start) : min(span.stop, section.stop)] for span in touching]
        if inside:
            length = sum(map(len, inside))
            sections.append(replace(section, start=size, stop=size + length))
            text += inside
            size += length
    return replace(document, text="".join(text), sections=tuple(sections), pages=(), pins=())


def one_section(document: Document) -> Document:
    """The same text as one section without a heading; heading lines stay in the text."""
    return replace(document, sections=(Section("", (), 0, len(document.text)),))


_REDRAWS = 100
_MIN_SENTENCES = 4  # of a document that DocSplit splits
_MIN_SHARE = 0.1  # of the words, in each of its views
_STRETCH_WORDS, _CROP_SHARES = 256, (0.1, 0.5)  # of Contriever
_MAX_SPAN_SHARE = 0.2  # of the words, in a span of several sentences of an inverse cloze
DrawnT = TypeVar("DrawnT")


# Draws two views of a document, each with a word if the document has any. A document that is too small for the method
# is returned twice; only dropout makes its vectors differ.
PairSampler: TypeAlias = Callable[[Document, np.random.Generator], tuple[Document, Document]]


class Sampling(StrEnum):
    """The samplers by name; see `SAMPLERS`."""

    DOCSPLIT = "docsplit"
    CROP_HALF = "crop_half"
    CONTRIEVER = "contriever"
    ICT = "ict"
    SIMCSE = "simcse"
    CT = "ct"


def docsplit(document: Document, rng: np.random.Generator) -> tuple[Document, Document]:
    """Each sentence goes to one of two views by a fair coin, in order.

    DocSplit (EMNLP 2023 Findings, "DocSplit: Simple Contrastive Pretraining for Large
    Document Embeddings", section 2.2). A split that leaves a view under a tenth of the words is drawn again.
    """
    spans = sentences(document)
    if len(spans) < _MIN_SENTENCES:
        return document, document
    sizes = np.array([n_words(document, sentence) for sentence in spans])
    for _ in range(_REDRAWS):  # one very long sentence can make every draw uneven
        heads = rng.random(len(spans)) < 0.5
        share = sizes[heads].sum() / sizes.sum()
        if _MIN_SHARE <= share <= 1 - _MIN_SHARE:
            first_view = [sentence for sentence, head in zip(spans, heads, strict=True) if head]
            other = [sentence for sentence, head in zip(spans, heads, strict=True) if not head]
            return keep(document, first_view), keep(document, other)
    return document, document


def crop_half(document: Document, _rng: np.random.Generator) -> tuple[Document, Document]:
    """The first half and the second, as DocSplit's section 3.1 describes Contriever.

    The cut is the end of the sentence that is nearest to the middle; a single sentence is
    cut between words.
    """
    pieces = sentences(document)
    if len(pieces) < 2:
        pieces = words(document)
    if len(pieces) < 2:
        return document, document
    before = list(accumulate(n_words(document, piece) for piece in pieces))
    first = min(range(1, len(pieces)), key=lambda number: abs(2 * before[number - 1] - before[-1]))
    cut = pieces[first].start
    return keep(document, [Span(0, cut)]), keep(document, [Span(cut, len(document.text))])


def independent_crops(
    document: Document, rng: np.random.Generator, *, deletion: float = 0.1
) -> tuple[Document, Document]:
    """Two crops of one stretch of 256 words, drawn independently, with words deleted.

    Contriever (Izacard et al. 2022, arXiv:2112.09118) as in its code, which takes 256 tokens:
    lengths are uniform in 0.1 to 0.5 of the stretch, positions are uniform, and crops may overlap.
    """
    every = words(document)
    if not every:
        return document, document
    first = int(rng.integers(max(1, len(every) - _STRETCH_WORDS + 1)))
    stretch = every[first : first + _STRETCH_WORDS]
    return keep(document, _crop(stretch, rng, deletion)), keep(document, _crop(stretch, rng, deletion))


def _crop(stretch: list[Span], rng: np.random.Generator, deletion: float) -> list[Span]:
    length = max(1, int(len(stretch) * rng.uniform(*_CROP_SHARES)))
    first = int(rng.integers(len(stretch) - length + 1))
    crop = stretch[first : first + length]
    return [word for word, fate in zip(crop, rng.random(length), strict=True) if fate >= deletion] or crop[:1]


def inverse_cloze(
    document: Document, rng: np.random.Generator, *, keep_probability: float = 0.1
) -> tuple[Document, Document]:
    """Some consecutive sentences, at most a fifth of the words or one sentence, and the rest of the document.

    The inverse cloze task (Lee et al. 2019, arXiv:1906.00300, section 4) with spans of one
    sentence or more. DocSplit's section 3.1 calls the rest a negative; it is the positive.

    Args:
        keep_probability: that the span stays in the rest.
    """
    spans = sentences(document)
    if len(spans) < 2:
        return document, document
    sizes = [n_words(document, sentence) for sentence in spans]
    wanted = rng.uniform(0, _MAX_SPAN_SHARE) * sum(sizes)
    first = int(rng.integers(len(spans)))
    stop = first + 1
    while stop < len(spans) and sum(sizes[first : stop + 1]) <= wanted:
        stop += 1
    span = keep(document, spans[first:stop])
    if rng.random() < keep_probability:
        return span, document
    return span, keep(document, spans[:first] + spans[stop:])


def same_twice(document: Document, _rng: np.random.Generator) -> tuple[Document, Document]:
    """The document, twice: its vectors differ by dropout in SimCSE, by the second encoder in Contrastive Tension."""
    return document, document


SAMPLERS: Mapping[Sampling, PairSampler] = {
    Sampling.DOCSPLIT: docsplit,
    Sampling.CROP_HALF: crop_half,
    Sampling.CONTRIEVER: independent_crops,
    Sampling.ICT: inverse_cloze,
    Sampling.SIMCSE: same_twice,
    Sampling.CT: same_twice,
}
_ROOMY = (Sampling.DOCSPLIT, Sampling.CROP_HALF, Sampling.CONTRIEVER)  # their views divide the text between them


@dataclass(frozen=True, slots=True)
class ViewBatch:
    """B pairs of views, and the positions of their documents in the corpus."""

    queries: tuple[SegmentedDocument, ...]
    targets: tuple[SegmentedDocument, ...]
    positions: tuple[int, ...]
    seed: int  # for draws later in the step


@dataclass(eq=False)
class ViewPairs:
    """Draws the batches of a corpus: every document once per epoch, with new views each time.

    A document that is too long for a step is first cut to a window of consecutive sentences, and the
    views are drawn from that window. Both views therefore lie in the same place. Two windows, one for
    each view, would mostly be two passages that share no text, whatever the sampler.

    A window has at most `max_tokens` tokens, or twice as many where views divide it. Text of a view beyond `max_tokens`
    is not read. With `joined`, a view is one chunk across headings, as in DocSplit and SimCSE, as far as the encoder
    reads at once. Otherwise chunks end at headings, as they do when the encoder is used.
    """

    encoder: Encoder
    documents: Sequence[Document]
    sampling: Sampling
    _: KW_ONLY
    batch_size: int  # documents
    max_tokens: int  # of a view, without special tokens
    joined: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        n_documents, n_each = len(self.documents), self.batch_size
        if min(n_documents, n_each) < 2:
            raise TrainingError(
                f"{n_documents} documents in batches of {n_each} have no negatives; give at least two of both"
            )

    def batch(self, step: int) -> ViewBatch:
        """The batch of a step, from 0; a document is left out if one of its views has no token."""
        rng, room = step_generator(self.seed, step), 2 if self.sampling in _ROOMY else 1

        def read(position: int) -> tuple[SegmentedDocument, SegmentedDocument, int]:
            window = self._window(self.documents[position], rng, room)
            query, target = map(self._read, SAMPLERS[self.sampling](window, rng))
            return query, target, position

        queries, targets, positions = zip(*self.draw(step, self.batch_size, read), strict=True)
        return ViewBatch(queries, targets, positions, int(rng.integers(2**62)))

    def draw(self, step: int, size: int, read: Callable[[int], DrawnT]) -> list[DrawnT]:
        """Read the documents of a step by their positions; a document is left out if it has no token."""
        drawn = []
        for position in epoch_slice(len(self.documents), size, step, self.seed):
            with suppress(DocumentError):
                drawn.append(read(position))
        if not drawn:
            raise TrainingError(f"the {size} documents of step {step} have no text that can be read")
        return drawn

    def stretch(self, document: Document, rng: np.random.Generator) -> SegmentedDocument:
        """Segment a document; if it is too long, a window of at most `max_tokens` tokens."""
        return self._read(self._window(document, rng, 1))

    def _window(self, document: Document, rng: np.random.Generator, room: int) -> Document:
        """A run of sentences of about `room` times `max_tokens` tokens; the document itself where it is not longer.

        The window is drawn as a run of chunks, so that tokens are counted by the encoder. Every run
        that cannot begin earlier or end later without being too long can be drawn. The sentences
        of the window are those that begin in the run.
        """
        segmented = self.encoder.segment(document)
        sizes, most = [len(ids) for ids in segmented.token_ids], room * self.max_tokens
        if sum(sizes) <= most:
            return document
        self._check(document, max(sizes))
        ends = np.cumsum(sizes)
        last_first = int(np.searchsorted(ends, ends[-1] - most)) + 1
        first = int(rng.integers(last_first + 1))
        before = int(ends[first - 1]) if first else 0
        stop = int(np.searchsorted(ends, before + most, side="right"))
        run = Span(segmented.chunks[first].start, segmented.chunks[stop - 1].stop)
        inside = [sentence for sentence in sentences(document) if run.start <= sentence.start < run.stop]
        return keep(document, inside or [run])  # no sentence begins in a run inside one very long sentence

    def _read(self, view: Document) -> SegmentedDocument:
        """Segment a view, and cut off its end if it is too long."""
        whole = self.encoder.segment(one_section(view) if self.joined else view)
        ends = np.cumsum([len(ids) for ids in whole.token_ids])
        n_read = 1 if self.joined else int(np.searchsorted(ends, self.max_tokens, side="right"))
        self._check(view, int(ends[0]))
        if n_read == len(whole.chunks):
            return whole
        return self.encoder.segment(keep(whole.document, [Span(0, whole.chunks[n_read - 1].stop)]))

    def _check(self, document: Document, chunk_tokens: int) -> None:
        if chunk_tokens > self.max_tokens:
            raise TrainingError(
                f"a chunk of {document.doc_id} has {chunk_tokens} tokens, a view at most {self.max_tokens}; "
                "give the encoder a smaller window, or allow longer views"
            )
