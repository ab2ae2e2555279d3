"""The table of sizes of the reference."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.markdown import markdown, origins
from benchmarks.samples.record import SampleRecord, SampleRow
from benchmarks.significance import randomization_p

DEFAULT = (400, 8)  # documents of the sample and m, as the product has them
_NOTE = (
    "nDCG@10 of the whole score on {split} queries ({counts}). Alone: each corpus in an index of its own. Mixed: one "
    "index of all {n_documents:,} documents, with one reference drawn from all. m: documents of the sample above a "
    "threshold. p: paired randomisation test of all queries against {default[0]} documents and m = {default[1]} in "
    "the same index, not adjusted."
)


def samples_table(records: Sequence[SampleRecord]) -> str:
    """A row for each size and m, a column for each corpus alone and in the mixed index."""
    return "\n\n".join(_one(record) for record in records)


def _one(record: SampleRecord) -> str:
    corpora = list(dict.fromkeys(row.corpus for row in record.rows))
    cells = {(row.n_sample, row.exceeding, row.is_mixed, row.corpus): row for row in record.rows}
    sizes = sorted({(row.n_sample, row.exceeding) for row in record.rows})
    places = [("alone", False), ("mixed", True)]
    head = ["Documents, m", *(f"{corpus}, {name}" for name, _ in places for corpus in corpora)]
    head += [f"{what}, {name}" for name, _ in places for what in ("mean", "p")]
    rows = []
    for n_sample, exceeding in sizes:
        figures, sums = [], []
        for _, is_mixed in places:
            own = [cells.get((n_sample, exceeding, is_mixed, corpus)) for corpus in corpora]
            default = [cells.get((*DEFAULT, is_mixed, corpus)) for corpus in corpora]
            figures += ["" if row is None else f"{np.mean(row.per_query):.3f}" for row in own]
            sums += _summary(own, default, record.origin.seed)
        rows.append([f"{n_sample:,}, {exceeding}", *figures, *sums])
    counts = ", ".join(
        f"{corpus} {next(len(row.per_query) for row in record.rows if row.corpus == corpus)}" for corpus in corpora
    )
    note = _NOTE.format(split=record.split, counts=counts, n_documents=record.n_documents, default=DEFAULT)
    return "\n".join([*markdown(head, rows), "", note, "", *origins([record])])


def _summary(own: Sequence[SampleRow | None], default: Sequence[SampleRow | None], seed: int) -> list[str]:
    """The mean over corpora, and p over all queries; "" where a corpus is too small for the sample."""
    rows = [row for row in own if row is not None]
    if len(rows) < len(own):
        return ["", ""]
    mean = float(np.mean([np.mean(row.per_query) for row in rows]))
    before = [row for row in default if row is not None]
    if len(before) < len(rows) or rows == before:
        return [f"{mean:.3f}", ""]
    p = randomization_p(
        np.concatenate([row.per_query for row in rows]), np.concatenate([row.per_query for row in before]), seed=seed
    )
    return [f"{mean:.3f}", f"{p:.3f}" if p >= 0.001 else "< 0.001"]
