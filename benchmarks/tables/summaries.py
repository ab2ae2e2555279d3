"""The tables of CL-SciSumm: papers and citation sentences that are ranked for summaries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from benchmarks.runs import Run
from benchmarks.tables.pivot import Cell, compared, grouped, interval_text, origins, pivot

_RIVAL = "bm25"
_TRAINED = "†"


@dataclass(frozen=True)
class SummaryDetails:
    """The details of a run of summaries, besides its cases, whose values are means over draws."""

    name: str  # of the task, see `benchmarks.scisumm.TASKS`
    is_trained_on_it: bool  # whether the encoder learned from pairs of this dataset
    n_candidates: float  # of a question, mean
    n_draws: int
    deviations: dict[str, float]  # by measure: standard deviation over draws; {} for one draw


def _details(run: Run) -> SummaryDetails:
    return run.details_as(SummaryDetails)


def summary_table(runs: Sequence[Run]) -> str:
    """One table for each task and split, in the order of their names; "" if there is no run."""

    def question(run: Run) -> tuple[str, ...]:
        return _details(run).name, run.split, run.dataset, str(_details(run).n_draws), str(run.origin.seed)

    tables = ["\n".join([*_table(own), ""]) for _, own in sorted(grouped(runs, question).items())]
    return "\n".join([*tables, *origins(runs)])


def _table(runs: Sequence[Run]) -> list[str]:
    """The table of runs of the same questions, and the note below it."""
    shown = sorted(runs, key=lambda run: (not run.encoder, run.encoder, run.system))
    primary, *others = shown[0].measures
    rival = next((run for run in shown if run.system == _RIVAL), None)
    columns: dict[str, Cell[Run] | Sequence[str]] = {
        "System": lambda run: run.label + _TRAINED * _details(run).is_trained_on_it,
        f"{primary} [95 %]": lambda run: f"{_mean(primary, run)} {interval_text(run, primary).partition(' ')[2]}",
        **{name: partial(_mean, name) for name in others},
        "p, BM25": compared(shown, lambda run: rival if rival and rival.case_ids == run.case_ids else None, primary),
    }
    details = _details(shown[0])
    draws = f", mean and standard deviation of {details.n_draws} draws" if details.n_draws > 1 else ""
    note = (
        f"CL-SciSumm, {details.name} ({shown[0].split}): {len(shown[0].cases)} summaries, {details.n_candidates:,.0f} "
        f"candidates each{draws}. In brackets: bootstrap interval. p: two-sided paired randomisation test of {primary} "
        "against BM25, adjusted by Holm's method over the systems. Interval and test draw from "
        f"{len(set(shown[0].groups or ()))} papers, each with all its summaries."
    )
    if any(_details(run).is_trained_on_it for run in shown):
        note += (
            f" {_TRAINED} was trained on pairs of this dataset, citing papers with papers that they cite: the reversed "
            "judgments of the citing tasks."
        )
    return [*pivot(shown, columns), "", note]


def _mean(name: str, run: Run) -> str:
    deviation = _details(run).deviations.get(name)
    return f"{run.mean(name):.3f}" + (f" ± {deviation:.3f}" if deviation is not None else "")
