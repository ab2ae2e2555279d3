"""The table of encoding on demand."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.demand.record import DemandRecord, DemandRow
from benchmarks.markdown import markdown, origins, p_cells
from benchmarks.significance import randomization_p
from engine.encoders.backbone.weights import BUNDLED_NAME

_NOTE = (
    "p: paired randomisation test of nDCG@10 against all documents encoded, or against words where these are not, "
    "adjusted after Holm within a corpus. An encoder is named where it is not the bundled one. "
    "Tokens: share of all that was encoded after 1, 10, 100 and all queries, the sample for thresholds included. "
    "Scaled, candidates first: nDCG@10 and Recall@100 of the same hits under two other rules, see the text."
)


def demand_table(records: Sequence[DemandRecord]) -> str:
    """A row for each corpus and number of candidates."""
    head = [
        "Corpus",
        "Way",
        "nDCG@10",
        "p",
        "Recall@100",
        "Tokens after 1 / 10 / 100 / all",
        "Scaled",
        "Candidates first",
    ]
    rows: list[list[str]] = []
    for record in records:
        ways = {row.way: row for row in record.rows}
        base = ways.get("all") or ways["words"]
        p_values = [
            None if row is base else randomization_p(row.per_query, base.per_query, seed=record.origin.seed)
            for row in record.rows
        ]
        for row, p in zip(record.rows, p_cells(p_values), strict=True):
            rows.append(
                [
                    f"{record.task} ({record.n_queries}{_encoder(record)})",
                    row.way,
                    f"{row.metrics['nDCG@10']:.3f}",
                    p,
                    f"{row.metrics['Recall@100']:.3f}",
                    " / ".join(f"{tokens / record.n_tokens:.0%}" for tokens in row.tokens.values()),
                    *(_other(row, rule) for rule in ("scaled", "candidates first")),
                ]
            )
    return "\n".join([*markdown(head, rows), "", _NOTE, "", *origins(records)])


def _encoder(record: DemandRecord) -> str:
    name = record.encoder.partition("@")[0]
    return "" if name == BUNDLED_NAME else f", {name}"


def _other(row: DemandRow, rule: str) -> str:
    found = row.other_rules.get(rule)
    return "" if found is None else f"{found['nDCG@10']:.3f}, {found['Recall@100']:.3f}"
