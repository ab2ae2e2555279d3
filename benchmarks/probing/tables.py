"""What probes learned, by task and system, with a test between systems; drawn from records alone."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence

from benchmarks.markdown import markdown, origins, p_cells
from benchmarks.probing.record import ProbeRecord
from benchmarks.significance import bootstrap_interval, randomization_p

_RIVAL = "tfidf"
_NOTE = (
    "Logistic regression on frozen vectors (of pairs: on u, v, u * v and |u - v|; _cosine: a threshold instead); "
    "accuracy with a bootstrap interval over what is classified. N a class: accuracy / macro-F1 from N labels of each "
    "class, mean and standard deviation over draws. p: two-sided paired randomisation test of accuracy against the "
    "regression on TF-IDF, adjusted after Holm over the systems of a task. Pairs of one first document are drawn, or "
    "swapped, together."
)


def probe_table(records: Sequence[ProbeRecord]) -> str:
    """Accuracy and macro-F1 with all labels and with few, by task; "" where there is no record."""
    shown = sorted(records, key=lambda record: (*_asked(record), not record.encoder, record.encoder, record.system))
    shots = sorted({shot for record in shown for shot in record.few_shot}, key=int)
    head = ["Task (test)", "System", "Accuracy [95 %]", "Macro-F1", *(f"{n} a class" for n in shots), "p, TF-IDF"]
    rows = [
        [*_quality(record), *(_few(record, shot) for shot in shots), p]
        for record, p in zip(shown, _p_values(shown), strict=True)
    ]
    return "\n".join([*markdown(head, rows), "", _NOTE, "", *origins(shown)]) if shown else ""


def _asked(record: ProbeRecord) -> tuple[str, str, str, int]:
    """What records must share to be compared."""
    return record.task, record.dataset, str(record.settings["max_words"]), record.n_test


def _quality(record: ProbeRecord) -> list[str]:
    low, high = bootstrap_interval(record.is_right, groups=record.groups or None, seed=record.origin.seed)
    words = record.settings["max_words"]
    remarks = [f"{record.n_test:,}", *([f"first {words} words"] if words else []), *(["quick"] * record.is_quick)]
    return [
        f"{record.task} ({', '.join(remarks)})",
        f"{record.system}, {record.encoder.partition('@')[0]}" if record.encoder else record.system,
        f"{record.metrics['accuracy']:.3f} [{low:.3f}, {high:.3f}]",
        f"{record.metrics['macro_f1']:.3f}",
    ]


def _few(record: ProbeRecord, shot: str) -> str:
    drawn = record.few_shot.get(shot, {})
    return " / ".join(f"{statistics.mean(values):.3f} ± {statistics.stdev(values):.3f}" for values in drawn.values())


def _p_values(shown: Sequence[ProbeRecord]) -> list[str]:
    """The cells of the last column; "" for TF-IDF itself, and where it was not asked the same."""
    rivals = {_asked(record): record for record in shown if record.system == _RIVAL}
    families: dict[tuple[str, str, str, int], list[int]] = defaultdict(list)
    for row, record in enumerate(shown):
        families[_asked(record)].append(row)
    cells = [""] * len(shown)
    for rows in families.values():
        p_values = [_p(shown[row], rivals.get(_asked(shown[row]))) for row in rows]
        for row, cell in zip(rows, p_cells(p_values), strict=True):
            cells[row] = cell
    return cells


def _p(record: ProbeRecord, rival: ProbeRecord | None) -> float | None:
    if rival is None or rival is record:
        return None
    groups = record.groups or None
    return randomization_p(record.is_right, rival.is_right, groups=groups, seed=record.origin.seed)
