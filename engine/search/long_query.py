"""Very long queries: neighbouring chunks are pooled, which limits the number of chunks and so the cost of a query.

    A query of at most 512 chunks is not changed. A longer query is searched with runs of r
    neighbouring chunks of one section, where r is the smallest number that leaves at most 512 runs.
    If one run per section is still too many, the 512 runs with most tokens are used. The vector of a run is

        the sum of n_j c_j over its chunks j, to unit length,

    with n_j tokens of chunk j. The span of a run goes from its first chunk to its last, and its weight follows
    from all its tokens. So every run is one part of the score, and the parts still sum to the score.

The coverage records how many chunks were pooled into one, and excludes the tokens of runs that were
not used. Targets are never pooled.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from engine.encoders.encoder import EncodedDocument, unit
from engine.text.spans import Chunk, Coverage

MOST_CHUNKS = 512  # of 126 tokens each: about 40,000 words


def pool_long(encoded: EncodedDocument, most: int | None = None) -> EncodedDocument:
    """The document in at most `most` chunks; unchanged if it has no more.

    Args:
        encoded: a query; its document and section vectors do not change.
        most: chunks, at least 1; `MOST_CHUNKS` by default.
    """
    most = most or MOST_CHUNKS
    if len(encoded.chunks) <= most:
        return encoded
    sections = np.array([chunk.section for chunk in encoded.chunk_spans])
    n_tokens = np.array([chunk.n_tokens for chunk in encoded.chunk_spans])
    per_run = _run_length(sections, most)
    starts = _run_starts(sections, per_run)
    tokens = np.add.reduceat(n_tokens, starts)
    rows = np.add.reduceat(encoded.chunks * np.maximum(n_tokens, 1)[:, None].astype(np.float32), starts, axis=0)
    kept = np.sort(np.argsort(-tokens, kind="stable")[:most])
    stops = np.append(starts[1:], len(sections))
    first, last = starts[kept].tolist(), (stops[kept] - 1).tolist()
    spans = tuple(
        Chunk(encoded.chunk_spans[a].section, encoded.chunk_spans[a].start, encoded.chunk_spans[b].stop, n)
        for a, b, n in zip(first, last, tokens[kept].tolist(), strict=True)
    )
    return replace(
        encoded,
        chunks=unit(rows[kept]),
        chunk_spans=spans,
        coverage=_coverage(encoded.coverage, float(tokens[kept].sum() / max(1, tokens.sum())), per_run),
    )


def _run_length(sections: NDArray[np.int64], most: int) -> int:
    """The smallest r that leaves at most `most` runs, or one run per section."""
    _, lengths = np.unique(sections, return_counts=True)
    longest = int(lengths.max())
    per_run = min(-(-len(sections) // most), longest)
    while np.ceil(lengths / per_run).sum() > most and per_run < longest:
        per_run += 1
    return per_run


def _run_starts(sections: NDArray[np.int64], per_run: int) -> NDArray[np.int64]:
    begins = np.flatnonzero(np.diff(sections, prepend=sections[0] - 1))
    number = np.arange(len(sections)) - np.repeat(begins, np.diff(begins, append=len(sections)))
    return np.flatnonzero(number % per_run == 0)


def _coverage(coverage: Coverage, share: float, per_run: int) -> Coverage:
    return replace(coverage, tokens_read=round(coverage.tokens_read * share), chunks_pooled=per_run)
