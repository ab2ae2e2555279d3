"""The run of a variant of a paper's comparison, and a table for each comparison, computed from runs alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import fmean

from benchmarks.markdown import markdown, origins, p_cells, run_p
from benchmarks.papers.comparison import LEVEL, Agreement, Bench, Comparison, Conditions, Measured, Scale, Size, Variant
from benchmarks.papers.comparison import agreement as agree
from benchmarks.quick import SUFFIX
from benchmarks.runs import Case, Run
from benchmarks.significance import bootstrap_interval, holm
from benchmarks.systems import Settings

_NOTE = (
    "[95 %]: bootstrap over cases, those of one group (pairs of one first document, summaries of one paper) drawn "
    "together. p: two-sided paired randomisation test against the variant in bold, in which groups are swapped "
    "together, adjusted after Holm over the variants of a table. Published: as printed, of other data and sizes. "
    f"Decided: by that test of each pair that the paper orders, adjusted over these, p < {LEVEL:g}. tau: Kendall's, "
    "over these pairs. Few labels: the cases are draws of labels, and tests tell chance of drawing alone."
)


@dataclass(frozen=True)
class PaperDetails:
    """What a run of a variant says beside the metric of each case."""

    paper: str
    comparison: str
    source: str  # where in the paper, and of what its numbers are
    place: int  # of the variant in the paper's table, from 0
    reference: str  # the variant that others are tested against
    published: float | None  # as printed; None where the paper gives no number
    below: list[str]  # variants that the paper puts below this one
    scale: Scale  # what might be spent
    bench: Settings  # datasets with checksums, how cases were drawn, and the backbone that was given
    begins_with: str  # for people: which weights were taken of the encoder
    size: Size | None  # of the encoder that was trained
    n_train: int  # cases learned from
    n_steps: int  # updates made
    best_step: int  # after which the weights were kept
    remark: str  # what else must be known to read the values


def variant_run(
    comparison: Comparison, variant: Variant, bench: Bench, conditions: Conditions, measured: Measured
) -> Run:
    """The run of a variant."""
    details = PaperDetails(
        paper=comparison.paper,
        comparison=comparison.name,
        source=comparison.source,
        place=comparison.variants.index(variant),
        reference=comparison.reference,
        published=variant.published,
        below=[worse for better, worse in comparison.published_order if better == variant.name],
        scale=conditions.scale,
        bench=bench.settings,
        begins_with=measured.begins_with,
        size=measured.size,
        n_train=measured.n_train,
        n_steps=measured.n_steps,
        best_step=measured.best_step,
        remark=measured.remark,
    )
    corpus, _, checksum = str(bench.settings["dataset"]).partition("@")
    is_grouped = len(set(measured.groups)) < len(measured.groups)
    return Run(
        task="papers",
        dataset=f"{corpus}{SUFFIX * conditions.is_quick}@{checksum}",
        system=variant.name,
        encoder=measured.encoder,
        settings=variant.arm.settings,
        variant=f"{comparison.paper}-{comparison.name}",
        seconds=round(measured.seconds, 1),
        details=asdict(details),
        origin=conditions.origin,
        cases=[
            Case(
                id=str(number),
                values={comparison.task.metric: round(value, 6)},
                group=str(group) if is_grouped else "",
            )
            for number, (value, group) in enumerate(zip(measured.values, measured.groups, strict=True))
        ],
    )


def asked_of(run: Run) -> tuple[object, ...]:
    """What must be equal for the same to be measured again, beside the settings of the variant."""
    details = run.details_as(PaperDetails)
    return details.paper, details.comparison, str(details.scale), str(details.bench), run.origin.seed, run.measures


def paper_table(runs: Sequence[Run]) -> str:
    """A table for each comparison at each scale, variants in the order of the paper; "" where there is no run."""
    asked: dict[tuple[str, ...], list[Run]] = defaultdict(list)
    for run in runs:
        asked[tuple(map(str, asked_of(run)))].append(run)
    tables = [_table(sorted(of_one, key=lambda run: _of(run).place)) for _, of_one in sorted(asked.items())]
    return "\n".join([*tables, _NOTE, "", *origins(runs)]) if tables else ""


def _of(run: Run) -> PaperDetails:
    return run.details_as(PaperDetails)


def compared(runs: Sequence[Run]) -> Agreement:
    """How far the order of measured variants, of one comparison and the same cases, is the paper's."""
    measured = {run.system: run for run in runs}
    order = [(better, worse) for better, run in measured.items() for worse in _of(run).below if worse in measured]
    (metric,) = runs[0].measures
    p_values = holm([run_p(measured[better], measured[worse], metric) or 0.0 for better, worse in order])
    means = {name: run.mean(metric) for name, run in measured.items()}
    return agree(order, means, dict(zip(order, p_values.tolist(), strict=True)))


def _table(runs: Sequence[Run]) -> str:
    (metric,) = runs[0].measures
    reference = next((run for run in runs if run.system == _of(run).reference), None)
    p_values = p_cells([run_p(run, reference, metric) for run in runs])
    head = ["Variant", f"{metric} [95 %]", "p", "Published", "Steps", "Seconds"]
    rows = [
        [
            f"**{run.system}**" if run is reference else run.system,
            _result(run, metric),
            p,
            "" if _of(run).published is None else f"{_of(run).published:g}",
            f"{_of(run).n_steps:,} ({_of(run).best_step:,})",
            f"{run.seconds:,.0f}",
        ]
        for run, p in zip(runs, p_values, strict=True)
    ]
    return "\n".join([_caption(runs), "", *markdown(head, rows), "", _verdict(compared(runs)), ""])


def _result(run: Run, metric: str) -> str:
    low, high = bootstrap_interval(run.values(metric), groups=run.groups, seed=run.origin.seed)
    return f"{fmean(run.values(metric)):.3f} [{low:.3f}, {high:.3f}]"


def _caption(runs: Sequence[Run]) -> str:
    """What is compared, on what, and at which scale."""
    first, details = runs[0], [_of(run) for run in runs]
    scale, bench = details[0].scale, details[0].bench
    sizes = dict.fromkeys(
        f"{one.size.layers} layers, {one.size.width} wide, {one.size.weights:,} parameters"
        for one in details
        if one.size is not None
    )
    backbone = str(bench.get("backbone", "")).partition("@")[0]
    begun = ", ".join(dict.fromkeys(one.begins_with for one in details if one.begins_with)) or backbone
    parts = [
        f"**{details[0].paper}, {details[0].comparison}** (published: {details[0].source}), here on {first.dataset}.",
        f"Scale: at most {scale.steps:,} steps of {scale.batch} and {scale.seconds:,.0f} s,",
        f"{scale.training_tokens:,} tokens of a document in a step, {scale.max_words:,} words when it is judged;",
        f"learned from {max(one.n_train for one in details):,} examples, judged by {len(first.cases):,};",
        f"{'; '.join(sizes) or 'no encoder'}, begun with {begun}; seed {first.origin.seed}.",
    ]
    return " ".join(parts)


def _verdict(agreed: Agreement) -> str:
    if agreed.tau is None:
        return "The paper puts none of these variants in order."
    return (
        f"Orderings of the paper shared: {agreed.n_shared} of {agreed.n_pairs} ({agreed.n_reversed} reversed); "
        f"of those decided here {agreed.n_decided_shared} of {agreed.n_decided}. Kendall's tau {agreed.tau:.2f}."
    )
