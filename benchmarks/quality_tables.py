"""How well targets are found, by task and system, with tests between systems; drawn from records alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

from benchmarks.datasets import TASKS
from benchmarks.markdown import markdown, origins, p_cells
from benchmarks.metrics import DEEP, METRICS, PRIMARY
from benchmarks.records import RetrievalRecord
from benchmarks.significance import bootstrap_interval, randomization_p
from benchmarks.systems import SCORINGS
from engine.encoders.backbone.weights import MINILM_NAME

_WITHOUT = "without-"  # begins the names of encoders that were trained without a corpus
_ORDER = (*SCORINGS, "document", "bm25")
_NOTE = (
    f"{PRIMARY} has the gain 2^relevance - 1, and a bootstrap interval over queries. p: two-sided paired "
    f"randomisation test of {PRIMARY}, adjusted after Holm over the systems of a task in one column, against "
)


def retrieval_table(records: Sequence[RetrievalRecord]) -> str:
    """Quality by task and system, with p-values where both records are there.

    Encoders that were trained without a corpus are left aside.
    """
    shown = sorted((record for record in records if not is_without(record)), key=_place)
    rivals = (_is_untrained, _is_document, _is_bm25)
    names = _metrics(shown)
    head = ["Task (queries)", "System", f"{PRIMARY} [95 %]", *names, "p, untrained", "p, document", "p, BM25"]
    columns = [_p_values(shown, records, rival) for rival in rivals]
    rows = [[*_quality(record, names), *cells] for record, *cells in zip(shown, *columns, strict=True)]
    note = _NOTE + "the evidence score of the untrained encoder, the document vector of the same encoder, and BM25."
    return "\n".join([*markdown(head, rows), "", note, "", *origins(shown)]) if shown else ""


def leave_one_out_table(records: Sequence[RetrievalRecord]) -> str:
    """Each corpus by the encoder that was trained without it, beside the untrained one and BM25."""
    trained = [record for record in records if is_without(record, of_own_task=True) and record.system == "evidence"]
    tasks = {record.task for record in trained}
    others = [record for record in records if record.task in tasks and (_is_untrained(record) or _is_bm25(record))]
    shown = sorted([*trained, *others], key=_place)
    names = _metrics(shown)
    head = ["Task (queries)", "System", f"{PRIMARY} [95 %]", *names, "p, untrained", "p, BM25"]
    columns = [_p_values(shown, others, rival) for rival in (_is_untrained, _is_bm25)]
    rows = [[*_quality(record, names), *cells] for record, *cells in zip(shown, *columns, strict=True)]
    note = _NOTE + "the evidence score of the untrained encoder, and BM25."
    return "\n".join([*markdown(head, rows), "", note, "", *origins(shown)]) if shown else ""


_FIRST_SCORE = "crowd"  # a constant of the score that had neither words nor a reference


def label(record: RetrievalRecord) -> str:
    """Its system, the encoder that this uses, and whether the score was the one before words and the reference."""
    name = f"{record.system}, {_encoder(record)}" if record.encoder else record.system
    return f"{name} (first score)" if _FIRST_SCORE in record.settings else name


def _encoder(record: RetrievalRecord) -> str:
    return record.encoder.partition("@")[0]


def is_without(record: RetrievalRecord, *, of_own_task: bool = False) -> bool:
    """Whether its encoder was trained without a corpus; with `of_own_task`, without the one that it was asked on."""
    return _encoder(record) == _WITHOUT + record.task if of_own_task else _encoder(record).startswith(_WITHOUT)


def _is_untrained(record: RetrievalRecord) -> bool:
    return (record.system, _encoder(record)) == ("evidence", MINILM_NAME)


def _is_document(record: RetrievalRecord) -> bool:
    return record.system == "document"


def _is_bm25(record: RetrievalRecord) -> bool:
    return record.system == "bm25"


def _place(record: RetrievalRecord) -> tuple[int, str, str, int, bool, str]:
    tasks, systems = [*TASKS, record.task], [*_ORDER, record.system]
    place = tasks.index(record.task), record.task, record.split
    return *place, systems.index(record.system), _encoder(record) == MINILM_NAME, record.encoder


def _metrics(records: Sequence[RetrievalRecord]) -> list[str]:
    """The metrics beside the first one."""
    return [*METRICS[1:], *([DEEP] if any(DEEP in record.metrics for record in records) else [])]


def _quality(record: RetrievalRecord, names: Sequence[str]) -> list[str]:
    low, high = bootstrap_interval(record.per_query[PRIMARY], seed=record.origin.seed)
    split = "" if record.split == "test" else f", {record.split}"
    return [
        f"{record.task}{split} ({record.n_queries})",
        label(record),
        f"{record.metrics[PRIMARY]:.3f} [{low:.3f}, {high:.3f}]",
        *(f"{record.metrics[name]:.3f}" if name in record.metrics else "" for name in names),
    ]


def _p_values(
    shown: Sequence[RetrievalRecord],
    records: Sequence[RetrievalRecord],
    is_wanted: Callable[[RetrievalRecord], bool],
) -> list[str]:
    """For each record shown its p-value against its rival, adjusted over those of the same queries; "" without one."""
    families: dict[tuple[str, str, tuple[str, ...]], list[int]] = defaultdict(list)
    for row, record in enumerate(shown):
        families[record.dataset, record.split, tuple(record.query_ids)].append(row)
    cells = [""] * len(shown)
    for rows in families.values():
        for row, cell in zip(rows, p_cells([_p(shown[row], records, is_wanted) for row in rows]), strict=True):
            cells[row] = cell
    return cells


def _p(
    record: RetrievalRecord, records: Sequence[RetrievalRecord], is_wanted: Callable[[RetrievalRecord], bool]
) -> float | None:
    """The p-value against the first record of the same queries that is wanted."""
    asked = (record.dataset, record.split, record.query_ids)
    for other in records:
        of_same_encoder = not _is_document(other) or other.encoder == record.encoder
        if other is record or not is_wanted(other) or not of_same_encoder:
            continue
        if (other.dataset, other.split, other.query_ids) == asked:
            return randomization_p(record.per_query[PRIMARY], other.per_query[PRIMARY], seed=record.origin.seed)
    return None
