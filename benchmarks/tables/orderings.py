"""The orderings of systems that the papers of SMITH, CoLDE, DocSplit and TDE publish, each tested on recorded runs.

An ordering is confirmed or contradicted if a paired test decides it; all others are undecided.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

from benchmarks.runs import Run
from benchmarks.significance import holm, randomization_p
from benchmarks.tables.encoders import RIGHT, ProbeDetails
from benchmarks.tables.pairs import PairsDetails, Scored
from benchmarks.tables.pivot import Cell, grouped, p_cells, page, pivot
from engine.encoders.files import MINILM_NAME

_LEVEL = 0.05
_FEW = "5"  # labels of a class
_NOTE = (
    "Published, here: the better system of the paper, then the other one. Pairs: accuracy on pairs of papers of "
    "clscisumm, all trained scorers under one budget (s-longformer reads whole documents in a third of the steps). "
    "Probe: accuracy on BBCNews from all labels, or mean accuracy over draws of five labels a class. p: two-sided "
    "paired randomisation test (pairs of one first document swapped together), adjusted by Holm's method over the "
    "orderings of a paper. Confirmed, contradicted: p below 0.05. Seeds: of training, better system and other one; the "
    "test compares the mean of a case over the seeds. The backbone of DocSplit's table is BERT in the paper, and "
    "all-MiniLM-L6-v2 here, which was trained on similarity."
)


@dataclass(frozen=True)
class Claim:
    """A system that a paper reports as better than others, with the printed values; None where there is none."""

    paper: str
    table: str
    measure: str  # of `_VALUES`
    better: str
    best: float | None
    others: Mapping[str, float | None]


_PAIRS, _PROBE, _FEW_SHOT = "pairs", "probe", "probe, few labels"
CLAIMS = (
    Claim(
        *("SMITH", "5", _PAIRS, "smith-wp-sp", 0.8536),
        {
            **{"smith-wp": 0.8400, "smith-np": 0.7725, "smith-short": 0.8212},
            **{"matchbert": 0.8355, "smash": 0.8375, "han": 0.8219},
        },
    ),
    Claim("SMITH", "5", _PAIRS, "smith-wp", 0.8400, {"smith-np": 0.7725}),
    Claim("SMITH", "7", _PAIRS, "smith-wp-sp", 0.8580, {"smith-wp-sp-attention": 0.8434, "smith-wp-sp-mean": 0.7061}),
    Claim(
        *("CoLDE", "2", _PAIRS, "colde", 0.7420),
        {
            **{"colde-without-lstm": 0.7063, "colde-without-aug": 0.6166, "colde-without-cl": 0.5955},
            **{"smith-wp-sp": 0.6918, "dssm": 0.6868, "han": 0.6640, "arc-i": 0.6557, "s-bert-512": 0.5663},
            "s-longformer": 0.6996,
        },
    ),
    Claim(
        *("TDE", "1", _PAIRS, "tde", 0.943),
        {"tde-without-topics": 0.941, "concept-graph": 0.872, "re2": 0.866, "wmd": 0.685, "tfidf": 0.538},
    ),
    Claim(
        *("DocSplit", "1", _PROBE, "docsplit", 0.9556),
        {MINILM_NAME: 0.9106, "ct": 0.9032, "simcse": 0.9412, "contriever": 0.9466, "crop_half": None, "ict": None},
    ),
    Claim(
        *("DocSplit", "2", _FEW_SHOT, "docsplit", 0.8686),
        {MINILM_NAME: 0.5422, "ct": 0.5956, "simcse": 0.8356, "contriever": 0.7771, "crop_half": None, "ict": None},
    ),
)


def _pair_system(run: Run) -> str:
    """The scorer, with its combination if that is not the recipe's, as its saved encoder is named."""
    combination = run.details_as(PairsDetails).chosen.get("size_combination")
    return f"{run.system}-{combination}" if combination else run.system


def _drawn_values(run: Run) -> Sequence[float]:
    return run.details_as(ProbeDetails).few_shot.get(_FEW, {}).get(RIGHT, [])


# By measure: the task, the name of a system, and a value for each case.
_VALUES: Mapping[str, tuple[str, Callable[[Run], str], Callable[[Run], Sequence[float]]]] = {
    _PAIRS: ("pairs", _pair_system, lambda run: Scored(run).correct),
    _PROBE: ("probe", lambda run: run.encoder_without_seed, lambda run: run.values(RIGHT)),
    _FEW_SHOT: ("probe", lambda run: run.encoder_without_seed, _drawn_values),
}


@dataclass(frozen=True)
class _Tested:
    """One ordering with the runs of both systems, one for each seed, on the same cases."""

    claim: Claim
    other: str
    sides: tuple[Sequence[Run], Sequence[Run]]  # the better system of the paper, and the other one

    @cached_property
    def values(self) -> list[list[float]]:
        """The mean of each case over the seeds, by side."""
        read = _VALUES[self.claim.measure][2]
        return [[fmean(of_case) for of_case in zip(*map(read, runs), strict=True)] for runs in self.sides]

    @cached_property
    def p(self) -> float:
        """The p-value, not adjusted."""
        first = self.sides[0][0]
        groups = first.groups if self.claim.measure == _PAIRS else None
        return randomization_p(*self.values, groups=groups, seed=first.origin.seed)

    @property
    def published(self) -> str:
        """The values of the paper; "" if it has none of the other system."""
        other = self.claim.others[self.other]
        best = f"{self.claim.best:.3f}" if self.claim.best is not None else "-"
        return f"{best}, {other:.3f}" if other is not None else ""

    def verdict(self, adjusted: float) -> str:
        """What the test says of the ordering."""
        better, other = map(fmean, self.values)
        return "undecided" if adjusted >= _LEVEL else "confirmed" if better > other else "contradicted"


_COLUMNS: dict[str, Cell[_Tested]] = {
    "Paper": lambda row: f"{row.claim.paper}, table {row.claim.table}",
    "Ordering": lambda row: f"{row.claim.better} above {row.other}",
    "Measure": lambda row: row.claim.measure,
    "Published": lambda row: row.published,
    "Here": lambda row: ", ".join(f"{fmean(values):.3f}" for values in row.values),
    "Seeds": lambda row: ", ".join(str(len(runs)) for runs in row.sides),
}


def orderings_table(runs: Sequence[Run]) -> str:
    """A row for each published ordering of which both systems have runs on the same cases."""
    rows = [row for claim in CLAIMS for row in _tested(claim, runs)]
    if not rows:
        return ""
    cells, verdicts = list[str](), list[str]()
    for own in grouped(rows, lambda row: row.claim.paper).values():
        p_values = [row.p for row in own]
        cells += p_cells(p_values)
        verdicts += [row.verdict(p) for row, p in zip(own, holm(p_values), strict=True)]
    used = {id(run): run for row in rows for runs in row.sides for run in runs}
    return page(pivot(rows, {**_COLUMNS, "p": cells, "Verdict": verdicts}), [_NOTE], list(used.values()))


def _tested(claim: Claim, runs: Sequence[Run]) -> list[_Tested]:
    task, name_of, values_of = _VALUES[claim.measure]
    # Documents of pairs are cut to a number of words, as in the runs under one budget.
    of_task = [run for run in runs if run.task == task and (task != "pairs" or run.corpus.endswith("words"))]
    of_system = grouped(filter(values_of, of_task), lambda run: (name_of(run), run.dataset, *run.case_ids))
    found = []
    for other in claim.others:
        for (name, *cases), better_runs in of_system.items():
            if name == claim.better and (other, *cases) in of_system:
                found.append(_Tested(claim, other, (_seeds(better_runs), _seeds(of_system[other, *cases]))))
                break
    return found


def _seeds(runs: Sequence[Run]) -> list[Run]:
    """The run of a system with the fewest settings of its own, and those that differ from it in the seed alone.

    Probes of a system differ in nothing else: their one setting is chosen on valid for each seed.
    """
    if runs[0].task == "probe":
        return list(runs)
    first = min(runs, key=lambda run: len(run.details.get("chosen", {})))
    return [
        run
        for run in runs
        if (run.settings, run.details.get("budget")) == (first.settings, first.details.get("budget"))
    ]
