"""The runs of comparisons, and the table that compares their means and their order with the paper's."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from benchmarks.markdown import markdown, origins, p_cells
from benchmarks.papers.comparison import Comparison, Conditions, Judged, Made, Scale, Size, Variant
from benchmarks.quick import SUFFIX
from benchmarks.runs import Run
from benchmarks.significance import bootstrap_interval, holm, randomization_p
from benchmarks.systems import Settings

LEVEL = 0.05  # p below which a measured difference counts as decided
_NOTE = (
    "[95 %]: bootstrap over cases, those of one group (pairs of one first document, summaries of one paper) drawn "
    "together. p: two-sided paired randomisation test against the variant in bold, in which groups are swapped "
    "together, adjusted after Holm over the variants of a table. Published: as printed, of other data and sizes. "
    f"Decided: by that test of each pair that the paper orders, adjusted over these, p < {LEVEL:g}. tau: Kendall's, "
    "over these pairs. Few labels: the cases are draws of labels, and tests cover the chance of drawing alone."
)
_SEEDS_NOTE = (
    " Several seeds: mean ± standard deviation over trainings; tests and intervals over the mean of each case."
)


@dataclass(frozen=True)
class GivenScale(Scale):
    """The scale of a run. Older runs also had a time limit, and therefore cannot be repeated."""

    seconds: float = 0.0  # limit of training on pairs; 0 for no limit

    @classmethod
    def of(cls, scale: Scale) -> GivenScale:
        """A scale without a time limit."""
        return cls(**asdict(scale))


@dataclass(frozen=True)
class PaperDetails:
    """The details of a run, besides its cases."""

    paper: str
    comparison: str
    source: str  # where in the paper, and what its numbers measure
    place: int  # of the variant in the paper's table, from 0
    reference: str  # the variant that others are tested against
    published: float | None  # as printed; None if the paper gives no number
    below: list[str]  # variants that the paper ranks below this one
    scale: GivenScale  # the limits of training and evaluation
    bench: Settings  # datasets with checksums, how cases were drawn, and the given backbone
    begins_with: str  # for people: which parameters of the initial encoder were used
    size: Size | None  # of the trained encoder
    n_train: int  # training cases
    n_steps: int  # updates
    best_step: int  # after which the parameters were kept
    remark: str  # further facts needed to read the values
    metric: str = ""  # of the cases; "" if they have only one value
    chunk_tokens: int = 0  # most tokens of a chunk, special tokens not counted; 0 in older runs


@dataclass(frozen=True)
class Trial:
    """The subject of a run: a variant of a comparison, on the cases of an opened judge."""

    comparison: Comparison
    variant: Variant
    bench: Settings  # of the judge
    conditions: Conditions

    @property
    def settings(self) -> Settings:
        """The settings of the encoder, with its training data."""
        system = self.variant.system
        return {**system.settings, **system.trained_on(self.conditions)}

    @property
    def cases(self) -> Settings:
        """The settings of the cases, and the backbone from which all variants start."""
        return {**self.bench, "backbone": self.conditions.backbone}

    @property
    def name(self) -> str:
        """The part of a run's file name besides corpus, variant and encoder."""
        return f"{self.comparison.paper}-{self.comparison.name}"


def variant_run(trial: Trial, made: Made, judged: Judged, seconds: float) -> Run:
    """The run of a variant; `seconds` is the duration of training and judging."""
    comparison, variant, conditions = trial.comparison, trial.variant, trial.conditions
    details = PaperDetails(
        paper=comparison.paper,
        comparison=comparison.name,
        source=comparison.source,
        place=comparison.variants.index(variant),
        reference=comparison.reference,
        published=variant.published,
        below=[worse for better, worse in comparison.published_order if better == variant.name],
        scale=GivenScale.of(conditions.scale),
        bench=trial.cases,
        begins_with=made.begins_with,
        size=made.size,
        n_train=made.n_train,
        n_steps=made.n_steps,
        best_step=made.best_step,
        remark=made.remark,
        metric=comparison.judge.metric,
        chunk_tokens=made.chunk_tokens,
    )
    corpus, _, checksum = str(trial.bench["dataset"]).partition("@")
    is_grouped = len({case.group for case in judged.cases}) < len(judged.cases)
    return Run(
        task="papers",
        dataset=f"{corpus}{SUFFIX * conditions.is_quick}@{checksum}",
        system=variant.name,
        encoder=made.encoder,
        settings=trial.settings,
        variant=trial.name,
        k=judged.k,
        seconds=round(seconds, 1),
        details=asdict(details),
        origin=conditions.origin,
        cases=judged.cases if is_grouped else [replace(case, group="") for case in judged.cases],
    )


def is_of(run: Run, trial: Trial) -> bool:
    """Whether the run has the data, scale, settings and seed of the trial, so that repeating it is not needed."""
    details, conditions = run.details_as(PaperDetails), trial.conditions
    return (
        (run.variant, run.system) == (trial.name, trial.variant.name)
        and (details.scale, details.bench) == (GivenScale.of(conditions.scale), trial.cases)
        and (run.settings, run.origin.seed) == (trial.settings, conditions.origin.seed)
    )


class _Row:
    """A variant with its runs, one for each seed, over the same cases."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self.run = runs[0]
        self.runs = runs
        self.details = self.run.details_as(PaperDetails)
        self.metric = self.details.metric or self.run.measures[0]
        self.values: list[float] = np.mean([run.values(self.metric) for run in runs], axis=0).tolist()
        self.mean = statistics.fmean(self.values)

    def p(self, other: _Row) -> float:
        return randomization_p(self.values, other.values, groups=self.run.groups, seed=self.run.origin.seed)

    @property
    def name(self) -> str:
        is_reference = self.run.system == self.details.reference
        return f"**{self.run.system}**" if is_reference else self.run.system

    @property
    def result(self) -> str:
        run = self.run
        low, high = bootstrap_interval(self.values, groups=run.groups, seed=run.origin.seed)
        means = [statistics.fmean(run.values(self.metric)) for run in self.runs]
        spread = f" ± {statistics.stdev(means):.3f}" if len(means) > 1 else ""
        return f"{self.mean:.3f}{spread} [{low:.3f}, {high:.3f}]"

    @property
    def steps(self) -> str:
        courses = [run.details_as(PaperDetails) for run in self.runs]
        return "; ".join(dict.fromkeys(f"{one.n_steps:,} ({one.best_step:,})" for one in courses))


def paper_table(runs: Sequence[Run]) -> str:
    """A table for each comparison at each scale, variants in the order of the paper; "" if there is no run."""
    asked: dict[tuple[str, ...], list[Run]] = defaultdict(list)
    for run in runs:
        details = run.details_as(PaperDetails)
        metrics = details.metric or str(run.measures)
        asked[details.paper, details.comparison, str(details.scale), str(details.bench), metrics].append(run)
    tables = [_table(_rows(of_one)) for _, of_one in sorted(asked.items())]
    has_seeds = len({run.origin.seed for run in runs}) > 1
    return "\n".join([*tables, _NOTE + _SEEDS_NOTE * has_seeds, "", *origins(runs)]) if tables else ""


def _rows(runs: Sequence[Run]) -> list[_Row]:
    of_variant: dict[str, list[Run]] = defaultdict(list)
    for run in sorted(runs, key=lambda run: run.origin.seed):
        of_variant[run.system].append(run)
    return sorted(map(_Row, of_variant.values()), key=lambda row: row.details.place)


def _table(rows: Sequence[_Row]) -> str:
    reference = next((row for row in rows if row.run.system == row.details.reference), None)
    p_values = p_cells([None if reference in (None, row) else row.p(reference) for row in rows])
    head = ["Variant", f"{rows[0].metric} [95 %]", "p", "Published", "Steps", "Seconds"]
    cells = [
        [
            row.name,
            row.result,
            p,
            "" if row.details.published is None else f"{row.details.published:g}",
            row.steps,
            f"{statistics.fmean(run.seconds for run in row.runs):,.0f}",
        ]
        for row, p in zip(rows, p_values, strict=True)
    ]
    return "\n".join([_caption(rows), "", *markdown(head, cells), "", _verdict(compared(rows)), ""])


def _caption(rows: Sequence[_Row]) -> str:
    """The comparison, its data and its scale."""
    first, details = rows[0].run, [row.details for row in rows]
    scale, bench = details[0].scale, details[0].bench
    sizes = dict.fromkeys(
        f"{one.size.layers} layers, {one.size.width} wide, {one.size.weights:,} parameters"
        for one in details
        if one.size is not None
    )
    chunks = [f"{n:,}" for n in sorted({one.chunk_tokens for one in details} - {0})]
    backbone = str(bench.get("backbone", "")).partition("@")[0]
    begun = ", ".join(dict.fromkeys(one.begins_with for one in details if one.begins_with)) or backbone
    seeds = sorted({run.origin.seed for row in rows for run in row.runs})
    limit = f", cut off at {scale.seconds:,.0f} s" if scale.seconds else ""
    parts = [
        f"**{details[0].paper}, {details[0].comparison}** (published: {details[0].source}), here on {first.dataset}.",
        f"Scale: at most {scale.steps:,} steps of {scale.batch}{limit},",
        f"{scale.training_tokens:,} tokens of a document in a step, {scale.max_words:,} words when it is judged;",
        f"learned from {max(one.n_train for one in details):,} examples, judged by {len(first.cases):,};",
        f"{'; '.join(sizes) or 'no encoder'}, begun with {begun};",
        *([f"chunks of at most {' or '.join(chunks)} tokens;"] if chunks else []),
        f"seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}.",
    ]
    return " ".join(parts)


@dataclass(frozen=True)
class Agreement:
    """The number of pairs for which our order agrees with the paper."""

    n_pairs: int  # pairs that the paper orders, both measured here
    n_shared: int  # pairs in the same order here
    n_reversed: int  # pairs in the reverse order here; the other pairs are equal
    n_decided: int  # pairs with a significant difference here
    n_decided_shared: int  # significant pairs in the same order here

    @property
    def tau(self) -> float | None:
        """Kendall's tau (1938) over the pairs that the paper orders, in [-1, 1]; None without such pairs.

            tau = (n_shared - n_reversed) / n_pairs

        If the paper orders all pairs, this is tau-a of the two rankings; a paper that names only the best variant
        orders only some pairs.
        """
        return (self.n_shared - self.n_reversed) / self.n_pairs if self.n_pairs else None


def agreement(
    order: Sequence[tuple[str, str]], means: Mapping[str, float], p_values: Mapping[tuple[str, str], float]
) -> Agreement:
    """Compare our means with the paper's order.

    Args:
        order: pairs of variants, the better one first; those with a variant that has no mean are left out.
        means: the mean of each measured variant, higher is better.
        p_values: of each of these pairs, adjusted for their number.
    """
    known = [(better, worse) for better, worse in order if better in means and worse in means]
    shared = [pair for pair in known if means[pair[0]] > means[pair[1]]]
    turned = [pair for pair in known if means[pair[0]] < means[pair[1]]]
    decided = [pair for pair in known if p_values[pair] < LEVEL]
    return Agreement(
        n_pairs=len(known),
        n_shared=len(shared),
        n_reversed=len(turned),
        n_decided=len(decided),
        n_decided_shared=sum(pair in shared for pair in decided),
    )


def compared(rows: Sequence[_Row]) -> Agreement:
    """The agreement with the paper of measured variants of one comparison over the same cases."""
    measured = {row.run.system: row for row in rows}
    order = [(better, worse) for better, row in measured.items() for worse in row.details.below if worse in measured]
    p_values = holm([measured[better].p(measured[worse]) for better, worse in order])
    means = {name: round(row.mean, 4) for name, row in measured.items()}
    return agreement(order, means, dict(zip(order, p_values.tolist(), strict=True)))


def _verdict(agreed: Agreement) -> str:
    if agreed.tau is None:
        return "The paper puts none of these variants in order."
    return (
        f"Orderings of the paper shared: {agreed.n_shared} of {agreed.n_pairs} ({agreed.n_reversed} reversed); "
        f"of those decided here {agreed.n_decided_shared} of {agreed.n_decided}. Kendall's tau {agreed.tau:.2f}."
    )
