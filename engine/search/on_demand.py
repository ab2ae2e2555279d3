"""Encoding on demand: the best documents of a query by words are encoded before they are scored.

Words choose the candidates, and a few of them are encoded. Their vectors are attached to the
opened index and, unless another process writes it, committed, so that no document is encoded twice.

Letters in shapes: R documents.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from sqlalchemy.exc import SQLAlchemyError

from engine.encoders.encoder import EncodedDocument, Encoder
from engine.errors import DocumentError, EngineError, IndexBusy
from engine.result import Encoding
from engine.scoring.evidence import CONTAINMENT, Scoring
from engine.search.allowance import Allowance
from engine.search.query import Query
from engine.search.searcher import Searcher
from engine.store.snapshot import Positions, Snapshot
from engine.store.writer import Writer

WANTED = 50  # best documents by words that are recorded as wanted; a later run encodes wanted documents first
DOCUMENTS_AT_ONCE = 8  # documents encoded between two checks of the budget
MEASURED_TOKENS = 2_000  # fewest encoded tokens for an estimate of the speed

BY_WORDS = Scoring(chunk_weight=0, document_weight=0)


@dataclass(slots=True)
class _Made:
    """The documents encoded for one query."""

    positions: list[int] = field(default_factory=list)
    encoded: list[EncodedDocument] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def n_tokens(self) -> int:
        return sum(one.coverage.tokens_read for one in self.encoded)


class OnDemand:
    """Encodes documents of one snapshot that have no vectors."""

    def __init__(
        self, snapshot: Snapshot, encoder: Callable[[], Encoder], *, store: bool, log: Callable[[str], None]
    ) -> None:
        """Encode into a snapshot.

        Args:
            snapshot: must stay open; the vectors of encoded documents are attached to it.
            encoder: returns the encoder of the index; called when the encoder is needed.
            store: whether vectors are also committed to the index, unless another process writes it.
            log: called with one line before documents are encoded, and one if vectors cannot be stored.
        """
        self._snapshot = snapshot
        self._encoder = encoder
        self._store = store
        self._log = log

    def for_query(
        self,
        query: Query,
        allowance: Allowance,
        *,
        where: str | None,
        without: str | Sequence[str] | None,
        scoring: Scoring | None = None,
    ) -> Encoding:
        """Encode the best candidates of a query that have no vectors.

        Args:
            query: the document to search with.
            allowance: limits of candidates and of tokens.
            where: metadata filter of the search.
            without: doc_id that the search leaves out, or several.
            scoring: of the search; one of containment chooses the candidates by containment.

        Raises:
            QueryError: the filter does not parse.
        """
        snapshot = self._snapshot
        is_cover = scoring is not None and scoring.cover
        by_words = Searcher(snapshot, replace(CONTAINMENT, chunk_weight=0) if is_cover else BY_WORDS)
        n_wanted = max(WANTED, allowance.candidates)
        best, _ = by_words.rank(query, k=n_wanted, where=where, without=without)
        candidates = best[: allowance.candidates]
        made = self.encode(candidates[~snapshot.has_vectors[candidates]], allowance.tokens, wanted=best)
        allowed = by_words.allowed(where, without)
        missing = snapshot.missing_tokens[allowed & ~snapshot.has_vectors]
        n_tokens, speed = int(missing.sum()), made.n_tokens / made.seconds if made.seconds else 0
        return Encoding(
            n_missing=len(missing),
            n_candidates=len(candidates),
            n_encoded=int(np.count_nonzero(snapshot.has_vectors[candidates])),
            n_encoded_now=len(made.positions),
            tokens_now=made.n_tokens,
            seconds_now=round(made.seconds, 3),
            tokens_missing=n_tokens,
            seconds_missing=round(n_tokens / speed, 1) if made.n_tokens >= MEASURED_TOKENS else None,
        )

    def encode(self, positions: Positions, tokens: int | None = None, *, wanted: Positions | None = None) -> _Made:
        """Encode documents, attach their vectors, and store the vectors if possible.

        Args:
            positions: documents without vectors, the most wanted first.
            tokens: approximate limit of tokens to read; at least one document is encoded.
            wanted: documents that are recorded as wanted, when vectors are stored, if they still have none then.
        """
        made = _Made()
        if len(positions):
            n_tokens = int(self._snapshot.missing_tokens[positions].sum())
            limit = "" if tokens is None or tokens >= n_tokens else f", {tokens:,} at most"
            self._log(f"encoding {len(positions)} documents without vectors, about {n_tokens:,} tokens{limit}")
            self._encoder().expect(n_tokens if tokens is None else min(n_tokens, tokens))
            self._make(made, positions, tokens)
        others = np.empty(0, np.int64) if wanted is None else wanted[~self._snapshot.has_vectors[wanted]]
        if made.positions:
            at = np.array(made.positions)
            others = np.setdiff1d(others, at)
            if self._store:
                self._commit(at, made.encoded, others)
            self._snapshot.attach(at, made.encoded)
        return made

    def _make(self, made: _Made, positions: Positions, tokens: int | None) -> None:
        started, encoder = time.perf_counter(), self._encoder()
        for first in range(0, len(positions), DOCUMENTS_AT_ONCE):
            block = positions[first : first + DOCUMENTS_AT_ONCE]
            if tokens is not None:
                within = made.n_tokens + np.cumsum(self._snapshot.missing_tokens[block]) <= tokens
                block = block[: max(int(np.argmin(np.append(within, False))), 0 if made.positions else 1)]
            segmented = []
            for position, (document, _) in zip(block.tolist(), self._snapshot.documents(block), strict=True):
                try:
                    segmented.append((position, encoder.segment(document)))
                except DocumentError:
                    continue  # a document without tokens is ranked by words alone
            if segmented:
                made.encoded += encoder.encode_segmented([one for _, one in segmented])
                made.positions += [position for position, _ in segmented]
            made.seconds = time.perf_counter() - started
            if tokens is not None and made.n_tokens >= tokens:
                break

    def _commit(self, positions: Positions, encoded: list[EncodedDocument], wanted: Positions) -> None:
        """Store vectors; if another process writes the index or it cannot be written, only this process uses them."""
        made = {part: (places, own) for part, places, own in self._snapshot.split(positions)}
        missed = {part: own for part, _, own in self._snapshot.split(wanted)}
        try:
            for part in self._snapshot.parts:
                if part in made or part in missed:
                    places, own = made.get(part, (positions[:0], positions[:0]))
                    vectors = [encoded[place] for place in places.tolist()]
                    self._commit_part(part, own, vectors, missed.get(part, positions[:0]))
        except IndexBusy:
            self._log("another process writes the index: these vectors serve this process alone")
        except (EngineError, OSError, SQLAlchemyError) as error:
            self._log(f"these vectors serve this process alone, the index cannot be written: {error}")

    def _commit_part(
        self, part: Snapshot, positions: Positions, encoded: list[EncodedDocument], wanted: Positions
    ) -> None:
        with Writer(part.folder) as writer:
            writer.claim(part.meta["encoder"])  # it may be bound to another encoder by now
            if len(positions):
                words = part.words(positions, apart=True)
                writer.add_vectors(part.roster.ids[positions].tolist(), encoded, words)
            writer.add_demand(part.roster.ids[wanted].tolist())
