"""A GPU copy of an index, in one or more parts, with the search interface of `AnnIndex`; `replication` builds it.

Letters in shapes: I query chunks, K results each, P parts, D width.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from engine.encoders.encoder import Vectors
from engine.errors import BudgetExceeded

if TYPE_CHECKING:
    from engine.store.ann import Ids

MOST = 2_048  # limit of GPU FAISS on the vectors of a query, and on the lists that it searches


@dataclass(frozen=True, slots=True)
class Part:
    """Some of the vectors, on one GPU."""

    index: Any  # of FAISS, with our ids
    gpu: int


class Replica:
    """Searches all parts and merges their results; one search at a time, as GPU FAISS requires."""

    can_filter = False  # GPU FAISS ignores a selector, or refuses it: the caller filters the results
    most_k = most_nprobe = MOST

    def __init__(self, parts: Sequence[Part], *, nprobe: int = 0, n_lists: int = 0) -> None:
        """Take over parts that share no vector; both numbers of lists are 0 for a type without."""
        self.parts = tuple(parts)
        self.nprobe = nprobe
        self.n_lists = n_lists
        self.n_vectors = sum(int(part.index.ntotal) for part in parts)
        self._lock = Lock()
        self._gpus = sorted({part.gpu for part in parts})
        self._threads = ThreadPoolExecutor(len(self._gpus)) if len(self._gpus) > 1 else None

    def search(
        self, queries: Vectors, k: int, *, allowed: NDArray[np.bool_] | None = None, nprobe: int | None = None
    ) -> tuple[Ids, Vectors]:
        """Like `AnnIndex.search`, for at most `most_k` vectors.

        Args:
            allowed: None, see `can_filter`.
            nprobe: lists to search, at most `most_nprobe`; by default that of the replica.

        Returns:
            (I, K) int64 and (I, K) float32, best first; id -1 where fewer were found.

        Raises:
            BudgetExceeded: the GPU has no room for the search, or failed.
        """
        assert allowed is None
        k = min(k, self.most_k, self.n_vectors)
        rows = np.ascontiguousarray(queries, np.float32)
        probed = min(nprobe or self.nprobe, self.n_lists, self.most_nprobe)
        import faiss  # here, so that a search without a GPU does not load it

        parameters: Any = faiss.SearchParametersIVF(nprobe=probed) if probed else None  # type: ignore[call-arg]

        def ask(gpu: int) -> list[tuple[Ids, Vectors]]:
            return [_ask(part, rows, k, parameters) for part in self.parts if part.gpu == gpu]

        try:
            with self._lock:
                found = [one for of_gpu in self._each(ask) for one in of_gpu]
        except RuntimeError as error:
            reason = str(error).splitlines()[-1][-160:]
            raise BudgetExceeded(
                f"the GPU failed in a search of {len(rows)} chunks for {k} each ({reason}); "
                "free its memory, or open the index on the CPU: --device cpu"
            ) from error
        return _merged(found, k)

    def _each(self, ask: Callable[[int], list[tuple[Ids, Vectors]]]) -> list[list[tuple[Ids, Vectors]]]:
        if self._threads is None:
            return [ask(gpu) for gpu in self._gpus]
        return list(self._threads.map(ask, self._gpus))

    def close(self) -> None:
        """Release the GPUs."""
        self.parts = ()
        if self._threads is not None:
            self._threads.shutdown()


@dataclass(frozen=True, slots=True)
class OpenReplica:
    """A replica that covers the chunks with ids up to `through_chunk`."""

    ann: Replica
    through_chunk: int
    summary: str  # type, vectors, bytes and GPUs


def _ask(part: Part, queries: Vectors, k: int, parameters: Any) -> tuple[Ids, Vectors]:  # noqa: ANN401
    D, ids = part.index.search(queries, min(k, int(part.index.ntotal)), params=parameters)
    return ids, np.where(ids >= 0, D, -np.inf).astype(np.float32)


def _merged(found: Sequence[tuple[Ids, Vectors]], k: int) -> tuple[Ids, Vectors]:
    """The best k of the results of all parts, best first."""
    ids, similarities = (np.concatenate(column, axis=1) for column in zip(*found, strict=True))  # (I, P K)
    if len(found) > 1 and ids.shape[1] > k:
        kept = np.argpartition(-similarities, k - 1, axis=1)[:, :k]
        ids, similarities = (np.take_along_axis(one, kept, axis=1) for one in (ids, similarities))
    order = np.argsort(-similarities, axis=1, kind="stable")
    return np.take_along_axis(ids, order, axis=1), np.take_along_axis(similarities, order, axis=1)
