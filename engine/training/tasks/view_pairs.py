"""Batches of two views per document, drawn from one window of it and cut to a maximum of tokens. Encodes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.encoders.encoder import Encoder, SegmentedDocument
from engine.errors import DocumentError, TrainingError
from engine.text.document import Document
from engine.text.spans import Span
from engine.training.task import epoch_slice, step_generator
from engine.training.tasks.samplers import PairSampler
from engine.training.tasks.views import keep, one_section, sentences


@dataclass(frozen=True, slots=True)
class PairBatch:
    """B pairs of views, and the positions of their documents in the corpus."""

    queries: tuple[SegmentedDocument, ...]
    targets: tuple[SegmentedDocument, ...]
    positions: tuple[int, ...]
    seed: int  # for draws later in the step


class ViewPairs:
    """Draws the batches of a corpus: every document once per epoch, with new views each time.

    A document that is too long for a step is first cut to a window of consecutive sentences, and the
    views are drawn from that window. Both views therefore lie in the same place. Two windows, one for
    each view, would mostly be two passages that share no text, whatever the sampler.
    """

    def __init__(
        self,
        encoder: Encoder,
        documents: Sequence[Document],
        sampler: PairSampler,
        *,
        batch_size: int,
        max_tokens: int,
        joined: bool = False,
        seed: int = 0,
    ) -> None:
        """Hold a corpus.

        Args:
            encoder: segments the views.
            documents: at least two.
            sampler: draws the two views.
            batch_size: documents of a batch, at least two.
            max_tokens: maximum tokens of a view, without special tokens. A window has at most
                `sampler.room` times as many. Text of a view beyond `max_tokens` is not read.
            joined: read a view as one chunk, across headings, as DocSplit and SimCSE do; text
                beyond what the encoder reads at once is not read. Otherwise chunks end at headings,
                as they do when the encoder is used.
            seed: of all draws.

        Raises:
            TrainingError: there are fewer than two documents, in all or in a batch, or `max_tokens` is below 1.
        """
        if min(len(documents), batch_size) < 2:
            raise TrainingError(
                f"{len(documents)} documents in batches of {batch_size} have no negatives; give at least two of both"
            )
        if max_tokens < 1:
            raise TrainingError(f"views of at most {max_tokens} tokens hold nothing; allow 512, or what fits in memory")
        self.encoder = encoder
        self.documents = documents
        self.sampler = sampler
        self.batch_size = batch_size
        self.max_tokens = max_tokens
        self.joined = joined
        self.seed = seed

    def batch(self, step: int) -> PairBatch:
        """The batch of a step, from 0; a document is left out if one of its views has no token.

        Raises:
            TrainingError: a chunk has more than `max_tokens` tokens, or all documents were left out.
        """
        rng = step_generator(self.seed, step)
        queries, targets, positions = [], [], []
        for position in epoch_slice(len(self.documents), self.batch_size, step, self.seed):
            try:
                window = self._window(self.documents[position], rng, self.sampler.room)
                query, target = map(self._read, self.sampler.views(window, rng))
            except DocumentError:
                continue
            queries.append(query)
            targets.append(target)
            positions.append(position)
        if not positions:
            raise TrainingError(f"the {self.batch_size} documents of step {step} have no text that can be read")
        return PairBatch(tuple(queries), tuple(targets), tuple(positions), int(rng.integers(2**62)))

    def stretch(self, document: Document, rng: np.random.Generator) -> SegmentedDocument:
        """Segment a document; if it is too long, a window of at most `max_tokens` tokens.

        Raises:
            DocumentError: it has no token.
            TrainingError: a chunk has more than `max_tokens` tokens.
        """
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
