"""Encoding on demand: the best documents of a query by words are encoded before they are scored.

A step above search and store, which an index takes before a search where some documents have no vectors.

Words choose the candidates, and a few of them are encoded. Their vectors are attached to the
opened index and, unless another process writes it, committed, so that no document is encoded twice.

Letters in shapes: R documents.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from engine.encoders.encoder import EncodedDocument, Encoder, segmented
from engine.errors import EngineError, IndexBusy
from engine.result import Encoding
from engine.scoring.evidence import CONTAINMENT, Scoring
from engine.search.query import Query
from engine.search.request import Request
from engine.search.searcher import Searcher
from engine.store.partitioned import Snapshot
from engine.store.snapshot import Positions
from engine.store.writer import Writer

DOCUMENTS_AT_ONCE = 8  # documents encoded between two checks of the budget
MEASURED_TOKENS = 2_000  # fewest encoded tokens for an estimate of the speed

BY_WORDS = Scoring(chunk_weight=0)


@dataclass(slots=True)
class _Made:
    """The documents encoded for one query."""

    positions: list[int] = field(default_factory=list)
    encoded: list[EncodedDocument] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def n_tokens(self) -> int:
        return sum(document.coverage.tokens_read for document in self.encoded)


@dataclass(frozen=True, slots=True)
class OnDemand:
    """Encodes documents that have no vectors; several threads may do so at a time."""

    encoder: Callable[[], Encoder]  # of the index; called when it is needed
    attach: Callable[[Positions, Sequence[EncodedDocument]], Snapshot]  # gives vectors to the opened index
    store: bool  # whether vectors are also committed to the index, unless another process writes it
    log: Callable[[str], None]  # gets a line before documents are encoded, and one if vectors cannot be stored

    def for_query(self, snapshot: Snapshot, query: Query, request: Request) -> Encoding:
        """Encode the best candidates of a query that have no vectors; of containment, the best by containment."""
        is_cover = request.used_scoring.cover
        by_words = Searcher(snapshot, replace(CONTAINMENT, chunk_weight=0) if is_cover else BY_WORDS)
        best, _ = by_words.rank(query, _best_by_words(request))
        candidates = best[: request.candidates]
        missing = candidates[~snapshot.has_vectors[candidates]]
        made, snapshot = self.encode(snapshot, missing, request.encode_tokens)
        missing_tokens = snapshot.missing_tokens[by_words.allowed(request) & ~snapshot.has_vectors]
        n_tokens, speed = int(missing_tokens.sum()), made.n_tokens / made.seconds if made.seconds else 0
        return Encoding(
            n_missing=len(missing_tokens),
            n_candidates=len(candidates),
            n_encoded=int(np.count_nonzero(snapshot.has_vectors[candidates])),
            n_encoded_now=len(made.positions),
            tokens_now=made.n_tokens,
            seconds_now=round(made.seconds, 3),
            tokens_missing=n_tokens,
            seconds_missing=round(n_tokens / speed, 1) if made.n_tokens >= MEASURED_TOKENS else None,
        )

    def encode(self, snapshot: Snapshot, positions: Positions, tokens: int | None = None) -> tuple[_Made, Snapshot]:
        """Encode documents, attach their vectors, and store the vectors if possible.

        Returns:
            What was encoded, and the snapshot with its vectors.
        """
        made = _Made()
        if len(positions):
            n_tokens = int(snapshot.missing_tokens[positions].sum())
            limit = "" if tokens is None or tokens >= n_tokens else f", {tokens:,} at most"
            self.log(f"encoding documents without vectors: {len(positions):,}, about {n_tokens:,} tokens{limit}")
            self.encoder().expect(n_tokens if tokens is None else min(n_tokens, tokens))
            self._make(made, snapshot, positions, tokens)
        if made.positions:
            at = np.array(made.positions)
            if self.store:
                self._commit(snapshot, at, made.encoded)
            snapshot = self.attach(at, made.encoded)
        return made, snapshot

    def _make(self, made: _Made, snapshot: Snapshot, positions: Positions, tokens: int | None) -> None:
        started, encoder = time.perf_counter(), self.encoder()
        for first in range(0, len(positions), DOCUMENTS_AT_ONCE):
            block = positions[first : first + DOCUMENTS_AT_ONCE]
            if tokens is not None:
                within = made.n_tokens + np.cumsum(snapshot.missing_tokens[block]) <= tokens
                block = block[: max(int(np.argmin(np.append(within, False))), 0 if made.positions else 1)]
            cut = [segmented(encoder, document) for document, _ in snapshot.documents(block)]
            readable = [document for document in cut if document is not None]  # others are ranked by words alone
            if readable:
                made.encoded += encoder.encode_segmented(readable)
                made.positions += [at for at, document in zip(block.tolist(), cut, strict=True) if document is not None]
            made.seconds = time.perf_counter() - started
            if tokens is not None and made.n_tokens >= tokens:
                break

    def _commit(self, snapshot: Snapshot, positions: Positions, encoded: list[EncodedDocument]) -> None:
        """Store vectors; if another process writes the index or it cannot be written, only this process uses them."""
        try:
            for number, places, positions_in_part in snapshot.split(positions):
                part = snapshot.parts[number]
                with Writer(part.folder) as writer:
                    writer.claim(part.meta["encoder"])  # it may be bound to another encoder by now
                    ids = part.locations.ids[positions_in_part].tolist()
                    vectors = [encoded[place] for place in places.tolist()]
                    writer.add_vectors(ids, vectors, part.words(positions_in_part, apart=True))
        except IndexBusy:
            self.log("another process writes the index: these vectors serve this process alone")
        except (EngineError, OSError) as error:
            self.log(f"these vectors serve this process alone, the index cannot be written: {error}")


def _best_by_words(request: Request) -> Request:
    """The request for the candidates, from the first rank on."""
    k = max(1, request.candidates)
    return Request(k=k, where=request.where, before=request.before, without=request.without)
