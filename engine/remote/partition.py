"""A partition that another process serves, as searches see it; see `engine.search.partition.Partition`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict

import numpy as np
from numpy.typing import NDArray

from engine.remote.batches import MOST_QUERIES, pack_several, packed_bytes, unpack_survey, unpack_tops
from engine.remote.snapshot import ServedSnapshot
from engine.remote.values import Packed, pack_query, unpack_ranks
from engine.scoring.evidence import Scoring
from engine.search.partition import Ranked, Ranks, Selection, Shown, Survey
from engine.search.query import Prepared
from engine.store.snapshot import Positions

_FRAME_BYTES = 8 << 20  # of a frame with several queries; servers accept 32 MB

OneQuery = tuple[int, int, Packed]  # position that is left out, number of chunks, and the query


class RemotePartition:
    """Ranks and shows the documents behind a server."""

    def __init__(self, snapshot: ServedSnapshot, scoring: Scoring) -> None:
        """Search a served index.

        Args:
            snapshot: pins the documents for all rounds.
            scoring: the constants of the score.
        """
        self._snapshot = snapshot
        self._scoring = scoring

    @property
    def n_documents(self) -> int:
        """N."""
        return self._snapshot.n_documents

    def rank(self, prepared: Prepared, selection: Selection, n_most: int) -> Ranks:
        """The best documents of the partition.

        Raises:
            PartitionUnavailable: the server does not answer in time.
            IndexChanged: the partition was written since the search began.
            QueryError: the filter does not parse.
        """
        head, arrays = pack_query(prepared, self._scoring, selection, n_most)
        n_chunks, n_documents = len(prepared.vectors.chunks), self.n_documents
        return self._snapshot.exchange.ask(
            "rank",
            lambda frame: unpack_ranks(frame, n_chunks, n_most, n_documents),
            head | {"state": self._snapshot.state},
            arrays,
        )

    def survey(self, selection: Selection) -> Survey:
        """The documents that pass a selection; errors as in `rank`."""
        head = {"selection": asdict(selection), "scoring": asdict(self._scoring), "state": self._snapshot.state}
        n_documents = self.n_documents
        return self._snapshot.exchange.ask("survey", lambda frame: unpack_survey(frame, n_documents), head)

    def tops(self, queries: Sequence[tuple[int, Prepared]], selection: Selection, n_most: int) -> list[Ranked]:
        """The best documents for each of several queries; errors as in `rank`."""
        packed = [
            (own, len(prepared.vectors.chunks), pack_query(prepared, self._scoring, selection, n_most))
            for own, prepared in queries
        ]
        found: list[Ranked] = []
        for run in _runs(packed):
            head, arrays = pack_several("queries", [one for _, _, one in run])
            n_chunks = [n for _, n, _ in run]
            found += self._snapshot.exchange.ask(
                "tops",
                lambda frame: unpack_tops(frame, n_chunks, n_most, self.n_documents),  # noqa: B023
                head | {"state": self._snapshot.state},
                arrays | {"own": np.array([own for own, _, _ in run], np.int64)},
            )
        return found

    def scores_of(self, prepared: Prepared, positions: Positions) -> NDArray[np.float64]:
        """The scores (R,) of given documents; errors as in `rank`."""
        head, arrays = pack_query(prepared, self._scoring, Selection(), 1)
        return self._snapshot.exchange.ask(
            "scores",
            lambda frame: frame.array("scores", np.float64, (len(positions),)),
            head | {"state": self._snapshot.state},
            arrays | {"positions": positions.astype(np.int64)},
        )

    def show(self, positions: Positions) -> Sequence[Shown]:
        """Documents as hits show them; errors as in `rank`."""
        return self._snapshot.shown(positions)


def _runs(queries: Sequence[OneQuery]) -> Iterator[list[OneQuery]]:
    """Group queries that are sent in one frame, by `_FRAME_BYTES` and `MOST_QUERIES`."""
    run: list[OneQuery] = []
    n_bytes = 0
    for query in queries:
        size = packed_bytes(query[2])
        if run and (n_bytes + size > _FRAME_BYTES or len(run) == MOST_QUERIES):
            yield run
            run, n_bytes = [], 0
        run.append(query)
        n_bytes += size
    if run:
        yield run
