"""Quality by length: lengths of queries and of their relevant targets, buckets of them, and what is recorded.

Nothing is judged anew: values a query come from retrieval records.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import Dataset, DatasetError, Qrels, read_documents, read_queries
from benchmarks.metrics import PRIMARY
from benchmarks.records import RetrievalRecord
from benchmarks.significance import bootstrap_interval
from benchmarks.slices.records import LengthRecord
from engine.document import Document
from indexer.training.origin import Origin

BY = ("query", "targets")


def buckets(lengths: NDArray[np.float64], n_buckets: int) -> list[NDArray[np.intp]]:
    """Cut queries at the quantiles of their lengths.

    Equal lengths stay together, so that buckets may be of unlike size, and fewer
    than were asked for.

    Args:
        lengths: (N,), N at least 1.
        n_buckets: at most this many.

    Returns:
        The places of the queries of each bucket, from the shortest to the longest; none is empty.
    """
    inner = np.unique(np.quantile(lengths, np.arange(1, n_buckets) / n_buckets))
    bucket = np.searchsorted(inner, lengths, side="left")
    return [np.flatnonzero(bucket == number) for number in np.unique(bucket)]


def read_lengths(dataset: Dataset, qrels: Qrels, length: Callable[[Document], int]) -> dict[str, NDArray[np.float64]]:
    """Measure queries and their relevant targets, in one pass over the corpus.

    Args:
        dataset: holds both; a relevant target that it lacks is left aside.
        qrels: judgments of Q queries.
        length: of a document.

    Returns:
        For each of `BY` (Q,) lengths, in the order of the queries; NaN where all relevant targets are absent.

    Raises:
        DatasetError: no query has a relevant target in the corpus.
    """
    relevant = {query_id: [doc_id for doc_id, rel in targets.items() if rel > 0] for query_id, targets in qrels.items()}
    needed = {doc_id for targets in relevant.values() for doc_id in targets}
    of_target = {document.doc_id: length(document) for document in read_documents(dataset) if document.doc_id in needed}
    found = [[of_target[doc_id] for doc_id in targets if doc_id in of_target] for targets in relevant.values()]
    if not any(found):
        raise DatasetError(
            f"dataset {dataset.name}: no relevant target of {len(relevant)} queries is in {dataset.corpus.name}; "
            "name the corpus that was judged"
        )
    medians = [float(np.median(lengths)) if lengths else np.nan for lengths in found]
    own = [length(query) for query in read_queries(dataset, qrels).values()]
    return {"query": np.array(own, dtype=np.float64), "targets": np.array(medians)}


def length_record(
    records: Sequence[RetrievalRecord],
    lengths: NDArray[np.float64],
    *,
    by: str,
    unit: str,
    n_buckets: int,
    origin: Origin,
) -> LengthRecord:
    """Average the primary metric of systems within each bucket.

    Args:
        records: of one dataset, split and list of queries; at least one.
        lengths: (N,), in the order of the records' queries; one without a length is left out, and counted.
        by: whose lengths they are, one of `BY`.
        unit: of the lengths.
        n_buckets: at most this many.
        origin: its seed is that of the intervals.
    """
    is_known = ~np.isnan(lengths)
    lengths = lengths[is_known]
    cut = buckets(lengths, n_buckets)
    values = [np.array(record.per_query[PRIMARY])[is_known] for record in records]
    ends = [[bootstrap_interval(of[places], seed=origin.seed) for places in cut] for of in values]
    return LengthRecord(
        task=records[0].task,
        dataset=records[0].dataset,
        split=records[0].split,
        metric=PRIMARY,
        by=by,
        unit=unit,
        shortest=[float(lengths[places].min()) for places in cut],
        median=[float(np.median(lengths[places])) for places in cut],
        longest=[float(lengths[places].max()) for places in cut],
        n_queries=[len(places) for places in cut],
        n_left_out=int(np.count_nonzero(~is_known)),
        systems=[_label(record) for record in records],
        mean=[[round(float(of[places].mean()), 4) for places in cut] for of in values],
        low=[[round(low, 4) for low, _ in of_buckets] for of_buckets in ends],
        high=[[round(high, 4) for _, high in of_buckets] for of_buckets in ends],
        origin=origin,
    )


def _label(record: RetrievalRecord) -> str:
    encoder = record.encoder.partition("@")[0]
    return f"{record.system}, {encoder}" if encoder else record.system
