"""The table of attempts at chunk vectors that find what words miss."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.gaps.record import BUNDLED, GapsRecord
from benchmarks.markdown import markdown, origins, p_cells
from benchmarks.significance import randomization_p

_NOTE = (
    "nDCG@10 of the joint score, chunk vectors of query, documents and reference mapped alike; words and document "
    "vectors as they are. Each corpus is left out of what a map is learned from, and of the choice of its steps. The "
    "encoder itself has seen train pairs of all corpora. p: paired randomisation test against the row "
    f'"{BUNDLED}", adjusted after Holm within a corpus.'
)


def gaps_table(records: Sequence[GapsRecord]) -> str:
    """A row for each attempt, a column for each corpus that was left out."""
    return "\n\n".join([*(_table(record) for record in records), _NOTE, "\n".join(origins(records))])


def _table(record: GapsRecord) -> str:
    columns = {corpus: _column(record, corpus) for corpus in record.corpora}
    n_queries = {corpus: len(record.rows[0].per_query[corpus]) for corpus in record.corpora}
    head = [f"Attempt, {record.split} queries", *(f"{name} ({n})" for name, n in n_queries.items()), "Mean"]
    rows = [
        [row.attempt, *(columns[corpus][at] for corpus in record.corpora), f"{_mean(row.per_query):.3f}"]
        for at, row in enumerate(record.rows)
    ]
    return "\n".join(markdown(head, rows))


def _column(record: GapsRecord, corpus: str) -> list[str]:
    (base,) = [row for row in record.rows if row.attempt == BUNDLED]
    p_values = [
        None if row is base else randomization_p(row.per_query[corpus], base.per_query[corpus], seed=record.origin.seed)
        for row in record.rows
    ]
    means = [f"{np.mean(row.per_query[corpus]):.3f}" for row in record.rows]
    return [f"{mean}, p {p}" if p else mean for mean, p in zip(means, p_cells(p_values), strict=True)]


def _mean(per_query: dict[str, list[float]]) -> float:
    """Each corpus counts the same."""
    return float(np.mean([np.mean(values) for values in per_query.values()]))
