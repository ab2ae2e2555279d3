"""All chunk vectors of documents in float16 on devices, each compared with a query in one pass. No lists, no files.

A stored vector is a row of float16. A query is split into two such rows, so its products are those of float32, and
they are summed in float32. The same code runs on any device, and needs torch alone.

Letters in shapes: Q queries, I query chunks of all of them, N documents with chunks, C chunks, D width.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.encoders.encoder import Vectors
from engine.errors import BudgetExceeded
from engine.scoring.evidence import ALONE, LEAST_ROOM, MOST_STRENGTHENED, QUERY_BLOCK, ROUNDING, Scoring, Thresholds

PRODUCTS_AT_ONCE = 1 << 24  # on each device: chunks of a block times query chunks
BYTES_AT_ONCE = 16 * PRODUCTS_AT_ONCE  # two tables of products, their maxima, and float64 values of these
_LOAD_CHUNKS = 1 << 17  # of whole documents that are copied at once
_LIMITS = ("chunks", "joined", "own", "opening")
_LOW = 2048.0  # scales the second row of a query chunk, so that float16 keeps its digits

Read = Callable[[NDArray[np.int64]], NDArray[np.float16]]  # the chunks of documents, by their positions


class DeviceScan:
    """The chunks of documents, one document after another, spread over devices by whole documents."""

    def __init__(
        self,
        n_chunks: NDArray[np.int64],
        read: Read,
        width: int,
        devices: Sequence[str],
        kinds: Callable[[NDArray[np.int64]], NDArray[np.uint8]] | None = None,
        products_at_once: int = PRODUCTS_AT_ONCE,
    ) -> None:
        """Copy all chunks to devices, for example `cuda:0`.

        Args:
            n_chunks: of each position; documents without chunks are not compared.
            kinds: reads the kind of the section of each chunk as a bit, at the first query that skips kinds.

        Raises:
            RuntimeError: the memory of a device is too small.
        """
        self._positions = np.flatnonzero(n_chunks)
        self.places = np.where(n_chunks > 0, np.cumsum(n_chunks > 0) - 1, -1)
        starts = np.concatenate([[0], np.cumsum(n_chunks[self._positions])])
        self.n_vectors = int(starts[-1])
        self.error = width * 2.0**-23  # of a similarity: D additions in float32, which may cut digits off
        cuts = np.searchsorted(starts, self.n_vectors * np.arange(len(devices) + 1) // len(devices)).tolist()
        self._parts = [
            _Part(device, self._positions[first:last], starts[first : last + 1], read, width, products_at_once)
            for device, first, last in zip(devices, cuts, cuts[1:], strict=False)
        ]
        self._kinds = kinds

    def components(
        self, queries: Sequence[tuple[Vectors, Thresholds]], scoring: Scoring, skip: int = 0
    ) -> NDArray[np.float64]:
        """chunks(q, t) of all documents, (Q, N), as `engine.scoring.evidence.chunk_component` computes them.

        Args:
            queries: chunks and thresholds of each; they share the pass.
            scoring: of which the power is used.
            skip: bits of the kinds of sections whose chunks are left out.

        Raises:
            BudgetExceeded: a device has no room for the products, or failed.
        """
        chunks = np.concatenate([chunks for chunks, _ in queries])
        limits = np.stack([np.concatenate([getattr(one, name) for _, one in queries]) for name in _LIMITS])
        limits = limits.astype(np.float64)
        weights = np.zeros((len(chunks), len(queries)))
        own = np.repeat(np.arange(len(queries)), [len(rows) for rows, _ in queries])
        weights[np.arange(len(chunks)), own] = np.concatenate([one.weights for _, one in queries])
        blocks = [slice(first, first + QUERY_BLOCK) for first in range(0, len(chunks), QUERY_BLOCK)]
        try:
            if skip and self._kinds is not None:
                for part in self._parts:
                    part.take_kinds(self._kinds)
                self._kinds = None
            sums = [
                part.components([(chunks[block], limits[:, block], weights[block]) for block in blocks], scoring, skip)
                for part in self._parts
            ]  # the devices work at the same time, until their sums are read
            return np.concatenate([of_part.cpu().numpy() for of_part in sums]).T
        except RuntimeError as error:
            reason = str(error).splitlines()[-1][-160:]
            raise BudgetExceeded(
                f"the GPU failed in a search of {len(chunks)} chunks ({reason}); "
                "free its memory, or open the index on the CPU: --device cpu"
            ) from error

    def close(self) -> None:
        """Release the devices."""
        self._parts = []


class _Part:
    """The documents on one device."""

    def __init__(
        self,
        device: str,
        positions: NDArray[np.int64],
        starts: NDArray[np.int64],  # (N + 1,)
        read: Read,
        width: int,
        products_at_once: int,
    ) -> None:
        self._positions = positions
        self._starts = starts - starts[0]
        self._starts_there = torch.from_numpy(self._starts).to(device)
        self._rows = torch.empty((int(self._starts[-1]), width), dtype=torch.float16, device=device)
        self._kinds: Tensor | None = None
        self._at_once = products_at_once
        for documents, chunks in self._blocks(_LOAD_CHUNKS):
            self._rows[chunks] = torch.from_numpy(read(positions[documents])).to(device)

    def take_kinds(self, kinds: Callable[[NDArray[np.int64]], NDArray[np.uint8]]) -> None:
        """Copy the kind of the section of each chunk."""
        self._kinds = torch.from_numpy(kinds(self._positions)).to(self._rows.device)

    def components(
        self, blocks: Sequence[tuple[Vectors, NDArray[np.float64], NDArray[np.float64]]], scoring: Scoring, skip: int
    ) -> Tensor:
        """The sums (N, Q) of weighted margins, there; blocks are query chunks, limits (4, .) and weights (., Q)."""
        device = self._rows.device
        sums: Tensor | None = None
        for chunks, limits, weights in blocks:
            high = chunks.astype(np.float16)
            low = ((chunks - high) * np.float32(_LOW)).astype(np.float16)  # 0 for stored vectors
            halves = [torch.from_numpy(rows.T).to(device) for rows in ((high, low) if low.any() else (high,))]
            (theta, phi, own, a), shares = (torch.from_numpy(values).to(device) for values in (limits, weights))
            if sums is None:
                sums = shares.new_zeros(len(self._starts) - 1, shares.shape[1])
            for documents, rows in self._blocks(self._at_once // len(chunks)):
                best, openings = self._best(documents, rows, halves, skip)  # (documents, .)
                above = torch.where(best - theta > ROUNDING, best - theta, 0.0) / (1 - theta).clamp(min=1e-9)
                joined = ((1 - a) * best + a * openings - phi) / (own - phi).clamp(min=LEAST_ROOM)
                strengthened = torch.minimum(joined.clamp(min=0), (MOST_STRENGTHENED * above).clamp(max=1))
                strengthened = torch.maximum(strengthened, above * (above / ALONE - 1).clamp(0, 1))
                above = torch.where((a > 0) & (own - phi > LEAST_ROOM), strengthened, above)
                sums[documents] += above.pow(scoring.power) @ shares
        assert sums is not None
        return sums

    def _best(self, documents: slice, rows: slice, halves: Sequence[Tensor], skip: int) -> tuple[Tensor, Tensor]:
        """max_j <q_i, t_j>, at most 1, and <q_i, t_0> of some documents, (., I) float64 both."""
        products = _products(self._rows[rows], halves[0])
        if len(halves) > 1:
            products += _products(self._rows[rows], halves[1]) / _LOW
        starts = self._starts_there[documents.start : documents.stop + 1] - rows.start
        first = starts[:-1]
        if skip:
            assert self._kinds is not None
            is_out = (self._kinds[rows] & skip) != 0
            products.masked_fill_(is_out[:, None], -torch.inf)
            places = torch.arange(len(products), dtype=torch.float64, device=products.device)
            places.masked_fill_(is_out, len(products) - 1)  # of a document that is left out as a whole
            first = torch.segment_reduce(places, "min", offsets=starts, unsafe=True).long()
        best = torch.segment_reduce(products, "max", offsets=starts, axis=0, unsafe=True)
        return best.double().clamp(max=1.0), products[first].double()

    def _blocks(self, n_chunks: int) -> Iterator[tuple[slice, slice]]:
        """Runs of documents with about `n_chunks` chunks: their numbers, and their rows."""
        first = 0
        while first < len(self._starts) - 1:
            end = self._starts[first] + n_chunks
            last = max(first + 1, int(np.searchsorted(self._starts, end, side="right")) - 1)
            yield slice(first, last), slice(int(self._starts[first]), int(self._starts[last]))
            first = last


def _products(rows: Tensor, halves: Tensor) -> Tensor:
    """Products of float16, summed in float32."""
    if rows.is_cuda:
        return torch.mm(rows, halves, out_dtype=torch.float32)
    return rows.float() @ halves.float()
