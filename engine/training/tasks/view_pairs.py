"""Batches of two views a document, cut to what one step can read. No vectors here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.document import Document, Span
from engine.encoders.encoder import Encoder, SegmentedDocument
from engine.errors import DocumentError, TrainingError
from engine.training.task import epoch_slice, step_generator
from engine.training.tasks.samplers import PairSampler
from engine.training.tasks.views import keep


@dataclass(frozen=True, slots=True)
class PairBatch:
    """B pairs of views, and where in the corpus their documents stand."""

    queries: tuple[SegmentedDocument, ...]
    targets: tuple[SegmentedDocument, ...]
    positions: tuple[int, ...]
    seed: int  # for what is drawn later in the step


class ViewPairs:
    """Draws the batches of a corpus: every document once an epoch, its views anew each time."""

    def __init__(
        self,
        encoder: Encoder,
        documents: Sequence[Document],
        sampler: PairSampler,
        *,
        batch_size: int,
        max_tokens: int,
        seed: int = 0,
    ) -> None:
        """Hold a corpus.

        Args:
            encoder: that segments the views.
            documents: at least two.
            sampler: of the two views.
            batch_size: documents of a batch, at least two.
            max_tokens: most tokens of a view, special ones not counted. Of a longer one
                a run of chunks is read, drawn at random.
            seed: of everything.

        Raises:
            TrainingError: one document has no negatives, or no token may be read.
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
        self.seed = seed

    def batch(self, step: int) -> PairBatch:
        """The batch of a step, from 0; a document of which some view has no token is left out.

        Raises:
            TrainingError: a chunk has more than `max_tokens` tokens, or all documents were left out.
        """
        rng = step_generator(self.seed, step)
        queries, targets, positions = [], [], []
        for position in epoch_slice(len(self.documents), self.batch_size, step, self.seed):
            try:
                query, target = (self.read(view, rng) for view in self.sampler.views(self.documents[position], rng))
            except DocumentError:
                continue
            queries.append(query)
            targets.append(target)
            positions.append(position)
        if not positions:
            raise TrainingError(f"the {self.batch_size} documents of step {step} have no text that can be read")
        return PairBatch(tuple(queries), tuple(targets), tuple(positions), int(rng.integers(2**62)))

    def read(self, view: Document, rng: np.random.Generator) -> SegmentedDocument:
        """Segment a view; where it is too long, a run of its chunks, segmented by itself.

        Every run that cannot begin earlier or end later without being too long may be drawn.

        Raises:
            DocumentError: it has no token.
            TrainingError: a chunk has more than `max_tokens` tokens.
        """
        segmented = self.encoder.segment(view)
        sizes = [len(ids) for ids in segmented.token_ids]
        if sum(sizes) <= self.max_tokens:
            return segmented
        if max(sizes) > self.max_tokens:
            raise TrainingError(
                f"a chunk of {view.doc_id} has {max(sizes)} tokens, a view at most {self.max_tokens}; "
                "give the encoder a smaller window, or allow longer views"
            )
        ends = np.cumsum(sizes)
        last_first = int(np.searchsorted(ends, ends[-1] - self.max_tokens)) + 1
        first = int(rng.integers(last_first + 1))
        before = int(ends[first - 1]) if first else 0
        stop = int(np.searchsorted(ends, before + self.max_tokens, side="right"))
        run = Span(segmented.chunks[first].start, segmented.chunks[stop - 1].stop)
        return self.encoder.segment(keep(view, [run]))
