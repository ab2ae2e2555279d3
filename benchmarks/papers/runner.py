"""Runs the variants of a comparison one after the other; what was measured already is not measured again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.papers.comparison import Bench, Comparison, Conditions, Measured, Variant
from benchmarks.papers.record import PaperRecord
from benchmarks.record_file import KIND, RecordError, rebuild, record_path, refuse_smaller, write_record
from engine.errors import EngineError

# What a variant may fail of by itself: a size that does not fit, memory, a disk; a bug is not caught.
_FAILURES = (EngineError, RuntimeError, ValueError, OSError, MemoryError)


def run_comparison(
    comparison: Comparison, names: Sequence[str], conditions: Conditions, folder: Path | None
) -> list[PaperRecord]:
    """Measure variants, and write a record for each as soon as it is there.

    A variant whose record lies in the folder, of equal data, scale, settings and seed, is taken from there, unless
    it failed. One that fails is recorded with its reason, though not over one that did not, and the next one follows.

    Args:
        comparison: what is compared.
        names: of variants; all where there are none.
        conditions: what they get alike.
        folder: of records; None writes none.

    Returns:
        The records, in the order of the comparison.

    Raises:
        EngineError: the data cannot be read, or a record of more steps or cases would be replaced.
    """
    chosen = [variant for variant in comparison.variants if not names or variant.name in names]
    if not chosen:
        return []
    bench = comparison.task.open(conditions)
    begun = [begin(comparison, variant, bench, conditions) for variant in chosen]
    known = [found(one, folder) for one in begun]
    for one, there in zip(begun, known, strict=True):
        if folder is not None and there is None:
            refuse_smaller(one, one.extent, folder)
    records = []
    for variant, one, there in zip(chosen, begun, known, strict=True):
        label = f"{comparison.name}, {variant.name}"
        if there is not None:
            conditions.log(f"{label}: its record is there, with the same data, scale and settings")
            records.append(there)
            continue
        conditions.log(f"{label}: up to {conditions.scale.steps:,} steps")
        records.append(_measured(one, variant, bench, conditions))
        if folder is not None and not (records[-1].failure and _is_measured(one, folder)):
            write_record(records[-1], folder)
    return records


def begin(comparison: Comparison, variant: Variant, bench: Bench, conditions: Conditions) -> PaperRecord:
    """The record of a variant before anything is measured."""
    return PaperRecord(
        paper=comparison.paper,
        comparison=comparison.name,
        source=comparison.source,
        variant=variant.name,
        place=comparison.variants.index(variant),
        reference=comparison.reference,
        published=variant.published,
        below=[worse for better, worse in comparison.published_order if better == variant.name],
        metric=comparison.task.metric,
        scale=conditions.scale,
        bench=bench.settings,
        settings=variant.arm.settings,
        is_quick=conditions.is_quick,
        failure="",
        encoder="",
        begins_with="",
        size=None,
        n_train=0,
        n_steps=0,
        best_step=0,
        seconds=0.0,
        remark="",
        values=[],
        groups=[],
        origin=conditions.origin,
    )


def found(begun: PaperRecord, folder: Path | None) -> PaperRecord | None:
    """The record in the folder of what has begun here; None where there is none, another one, or one that failed.

    Raises:
        RecordError: a file of its name is no record.
    """
    there = None if folder is None else _read(record_path(begun, folder))
    return there if there is not None and there.asked == begun.asked and not there.failure else None


def _is_measured(begun: PaperRecord, folder: Path) -> bool:
    there = _read(record_path(begun, folder))
    return there is not None and not there.failure


def _read(path: Path) -> PaperRecord | None:
    if not path.exists():
        return None
    try:
        values = json.loads(path.read_text("utf-8"))
        values.pop(KIND)
        return rebuild(PaperRecord, values)
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise RecordError(f"{path} is no record ({error!r}); remove it, and it is measured again") from error


def _measured(begun: PaperRecord, variant: Variant, bench: Bench, conditions: Conditions) -> PaperRecord:
    try:
        measured = bench.measure(variant.arm)
    except _FAILURES as error:
        reason = str(error) or type(error).__name__
        conditions.log(f"{begun.comparison}, {variant.name} failed: {reason}")
        return replace(begun, failure=reason)
    return _filled(begun, measured)


def _filled(begun: PaperRecord, measured: Measured) -> PaperRecord:
    return replace(
        begun,
        encoder=measured.encoder,
        begins_with=measured.begins_with,
        size=measured.size,
        n_train=measured.n_train,
        n_steps=measured.n_steps,
        best_step=measured.best_step,
        seconds=round(measured.seconds, 1),
        remark=measured.remark,
        values=[round(value, 6) for value in measured.values],
        groups=list(measured.groups),
    )
