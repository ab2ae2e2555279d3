"""How well summaries find what belongs to them, a table a task, with tests between systems; from records alone."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.markdown import markdown, origins, p_cells
from benchmarks.scisumm.record import SummaryRecord
from benchmarks.significance import bootstrap_interval, randomization_p

_RIVAL = "bm25"
_TRAINED = "†"


def summary_table(records: Sequence[SummaryRecord]) -> str:
    """One table for each task and split, in the order of their names; "" where there is no record."""
    asked = sorted({_asked(record) for record in records})
    tables = [_table([record for record in records if _asked(record) == one]) for one in asked]
    return "\n".join([*("\n".join([*table, ""]) for table in tables), *origins(records)])


def _table(records: Sequence[SummaryRecord]) -> list[str]:
    """Records of the same questions."""
    shown = sorted(records, key=lambda record: (not record.encoder, record.encoder, record.system))
    measures = list(shown[0].metrics)
    primary = measures[0]
    rival = next((record for record in shown if record.system == _RIVAL), None)
    p_values = [_p(record, rival, primary) for record in shown]
    head = ["System", f"{primary} [95 %]", *measures[1:], "p, BM25"]
    rows = [
        [_system(record), _interval(record, primary), *(_value(record, name) for name in measures[1:]), p]
        for record, p in zip(shown, p_cells(p_values), strict=True)
    ]
    note = _note(shown[0], primary)
    if any(record.is_trained_on_it for record in shown):
        note += (
            f" {_TRAINED} was trained on pairs of this dataset, citing papers with papers that they cite: judgments "
            "of the citing tasks, reversed."
        )
    return [*markdown(head, rows), "", note]


def _asked(record: SummaryRecord) -> tuple[str, str, str, bool, int, int]:
    """What records must share to stand in one table, and to be compared."""
    return record.task, record.split, record.dataset, record.is_quick, record.n_draws, record.origin.seed


def _system(record: SummaryRecord) -> str:
    name = f"{record.system}, {record.encoder.partition('@')[0]}" if record.encoder else record.system
    return name + _TRAINED * record.is_trained_on_it


def _interval(record: SummaryRecord, name: str) -> str:
    low, high = bootstrap_interval(record.per_query[name], groups=record.topic_ids, seed=record.origin.seed)
    return f"{_value(record, name)} [{low:.3f}, {high:.3f}]"


def _value(record: SummaryRecord, name: str) -> str:
    deviation = f" ± {record.deviations[name]:.3f}" if name in record.deviations else ""
    return f"{record.metrics[name]:.3f}{deviation}"


def _p(record: SummaryRecord, rival: SummaryRecord | None, name: str) -> float | None:
    if rival is None or rival is record or rival.query_ids != record.query_ids:
        return None
    own, others = record.per_query[name], rival.per_query[name]
    return randomization_p(own, others, groups=record.topic_ids, seed=record.origin.seed)


def _note(record: SummaryRecord, primary: str) -> str:
    quick = ", a small part" if record.is_quick else ""
    draws = f", mean and standard deviation of {record.n_draws} draws" if record.n_draws > 1 else ""
    return (
        f"CL-SciSumm, {record.task} ({record.split}{quick}): {record.n_queries} summaries, {record.n_candidates:,.0f} "
        f"candidates each{draws}. Bootstrap interval; p: two-sided paired randomisation test of {primary} against "
        f"BM25, adjusted after Holm over the systems; both over {len(set(record.topic_ids))} papers, with all "
        "summaries of each."
    )
