"""Makes scorers and measures them one after the other; one that fails is told, and the others go on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import click

from benchmarks.options import log
from benchmarks.pairs.scorer import PairScorer
from benchmarks.pairs.scorers import TRAINING_TOKENS, ScorerOptions, make_scorer
from benchmarks.record_file import Recorded, write_record
from benchmarks.systems import Settings
from engine.errors import EngineError

RecordedT = TypeVar("RecordedT", bound=Recorded)


def measure_each(
    names: Sequence[str],
    options: ScorerOptions,
    measure: Callable[[PairScorer, Settings], RecordedT],
    *,
    told: str,
    folder: Path | None,
) -> tuple[list[RecordedT], list[str]]:
    """Measure scorers one after the other, and write each record when it is there.

    Args:
        names: of scorers.
        options: what a user chooses of them.
        measure: takes a scorer that is not fitted yet, and those of its settings that are not its defaults.
        told: what is put to each of them, for people.
        folder: of the records; None writes none.

    Returns:
        The records, and for each scorer that failed its name and why.
    """
    records: list[RecordedT] = []
    failed: list[str] = []
    for name in names:
        log(f"{told} to {name}")
        try:
            scorer = make_scorer(name, options)
            record = measure(scorer, _not_default(scorer, options))
            if folder is not None:
                write_record(record, folder)
        except EngineError as error:
            log(f"{name}: {error}")
            failed.append(f"{name}: {error}")
            continue
        records.append(record)
    return records, failed


def refuse_failed(failed: Sequence[str], n_scorers: int) -> None:
    """End a command whose scorers failed in part, when all others are measured.

    Raises:
        click.ClickException: with each of them and why.
    """
    if failed:
        raise click.ClickException(f"{len(failed)} of {n_scorers} scorers failed; {'; '.join(failed)}")


def _not_default(scorer: PairScorer, options: ScorerOptions) -> Settings:
    """The settings of a scorer that is not fitted yet which it would not have without being asked."""
    plain = replace(options, training_tokens=TRAINING_TOKENS, word_vectors=None, is_small=False)
    default = make_scorer(scorer.name, plain).settings
    return {name: value for name, value in scorer.settings.items() if default.get(name) != value}
