"""The orderings of systems that the papers of SMITH, CoLDE, DocSplit and TDE publish, each tested on recorded runs.

An ordering is confirmed or contradicted if a paired test decides it; all others are undecided.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import fmean

from benchmarks.markdown import markdown, origins, p_cells
from benchmarks.pair_judging import is_correct
from benchmarks.pairs.tables import PairsDetails
from benchmarks.runs import Run
from benchmarks.significance import holm, randomization_p
from benchmarks.tasks.probe import RIGHT, ProbeDetails
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


def _pair_values(run: Run) -> Sequence[float]:
    labels = [bool(value) for value in run.values("match")]
    return [
        float(one) for one in is_correct(run.values("score"), labels, run.details_as(PairsDetails).accuracy_threshold)
    ]


def _drawn_values(run: Run) -> Sequence[float]:
    return run.details_as(ProbeDetails).few_shot.get(_FEW, {}).get(RIGHT, [])


# By measure: the task, the name of a system, and a value for each case.
_VALUES: Mapping[str, tuple[str, Callable[[Run], str], Callable[[Run], Sequence[float]]]] = {
    _PAIRS: ("pairs", _pair_system, _pair_values),
    _PROBE: ("probe", lambda run: run.encoder_without_seed, lambda run: run.values(RIGHT)),
    _FEW_SHOT: ("probe", lambda run: run.encoder_without_seed, _drawn_values),
}


@dataclass(frozen=True)
class _Tested:
    """One ordering with the runs of both systems, one for each seed, on the same cases."""

    claim: Claim
    other: str
    better_runs: Sequence[Run]
    other_runs: Sequence[Run]

    def _means(self, runs: Sequence[Run]) -> list[float]:
        """The mean of each case over the seeds."""
        read = _VALUES[self.claim.measure][2]
        return [fmean(of_case) for of_case in zip(*map(read, runs), strict=True)]

    @property
    def values(self) -> tuple[list[float], list[float]]:
        """The value of each case: of the better system of the paper, and of the other one."""
        return self._means(self.better_runs), self._means(self.other_runs)

    @property
    def p(self) -> float:
        """The p-value, not adjusted."""
        better, other = self.values
        first = self.better_runs[0]
        groups = first.groups if self.claim.measure == _PAIRS else None
        return randomization_p(better, other, groups=groups, seed=first.origin.seed)

    def row(self, adjusted: float, cell: str) -> list[str]:
        """The row of the table."""
        better, other = map(fmean, self.values)
        decided = "confirmed" if better > other else "contradicted"
        published = [
            f"{value:.3f}" if value is not None else "-" for value in (self.claim.best, self.claim.others[self.other])
        ]
        return [
            f"{self.claim.paper}, table {self.claim.table}",
            f"{self.claim.better} above {self.other}",
            self.claim.measure,
            ", ".join(published) if self.claim.others[self.other] is not None else "",
            f"{better:.3f}, {other:.3f}",
            f"{len(self.better_runs)}, {len(self.other_runs)}",
            cell,
            decided if adjusted < _LEVEL else "undecided",
        ]


def orderings_table(runs: Sequence[Run]) -> str:
    """A row for each published ordering of which both systems have runs on the same cases."""
    found = list(chain.from_iterable(_tested(claim, runs) for claim in CLAIMS))
    rows = []
    for paper in dict.fromkeys(claim.paper for claim in CLAIMS):
        own = [one for one in found if one.claim.paper == paper]
        p_values = [one.p for one in own]
        rows += [one.row(p, cell) for one, p, cell in zip(own, holm(p_values), p_cells(p_values), strict=True)]
    if not rows:
        return ""
    head = ["Paper", "Ordering", "Measure", "Published", "Here", "Seeds", "p", "Verdict"]
    used = {id(run): run for one in found for run in (*one.better_runs, *one.other_runs)}
    return "\n".join([*markdown(head, rows), "", _NOTE, "", *origins(list(used.values()))])


def _tested(claim: Claim, runs: Sequence[Run]) -> list[_Tested]:
    task, name_of, values_of = _VALUES[claim.measure]
    of_task = [run for run in runs if run.task == task and (task != "pairs" or _is_limited(run)) and values_of(run)]
    of_system: defaultdict[tuple[str, ...], list[Run]] = defaultdict(list)
    for run in of_task:
        of_system[name_of(run), run.dataset, *run.case_ids].append(run)
    found = []
    for other in claim.others:
        for (name, *cases), better_runs in of_system.items():
            if name == claim.better and (other, *cases) in of_system:
                found.append(_Tested(claim, other, _seeds(better_runs), _seeds(of_system[other, *cases])))
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


def _is_limited(run: Run) -> bool:
    """Whether documents were cut to a number of words, as in the runs under one budget."""
    return run.corpus.endswith("words")
