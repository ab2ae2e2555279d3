"""A table for each comparison of a paper: ours beside what is published, and how far the orders agree; from records."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from benchmarks.markdown import markdown, origins, p_cells
from benchmarks.papers.ordering import LEVEL, Agreement, agreement
from benchmarks.papers.record import PaperRecord
from benchmarks.significance import bootstrap_interval, holm, randomization_p

_NOTE = (
    "[95 %]: bootstrap over cases, those of one group (pairs of one first document, summaries of one paper) drawn "
    "together. p: two-sided paired randomisation test against the variant in bold, in which groups are swapped "
    "together, adjusted after Holm over the variants of a table. Published: as printed, of other data and sizes. "
    f"Decided: by that test of each pair that the paper orders, adjusted over these, p < {LEVEL:g}. tau: Kendall's, "
    "over these pairs. Few labels: the cases are draws of labels, and tests tell chance of drawing alone."
)


def paper_table(records: Sequence[PaperRecord]) -> str:
    """A table for each comparison at each scale, variants in the order of the paper; "" where there is no record."""
    asked: dict[tuple[str, ...], list[PaperRecord]] = defaultdict(list)
    for one in records:
        asked[one.paper, one.comparison, *map(str, one.asked[:-1])].append(one)
    tables = [_table(sorted(of_one, key=lambda one: one.place)) for _, of_one in sorted(asked.items())]
    return "\n".join([*tables, _NOTE, "", *origins(records)]) if tables else ""


def compared(records: Sequence[PaperRecord]) -> Agreement:
    """How far the order of measured variants, of one comparison and the same cases, is the paper's."""
    measured = {record.variant: record for record in records if not record.failure}
    order = [(better, worse) for better, record in measured.items() for worse in record.below if worse in measured]
    p_values = holm([_p(measured[better], measured[worse]) for better, worse in order])
    means = {name: record.mean for name, record in measured.items()}
    return agreement(order, means, dict(zip(order, p_values.tolist(), strict=True)))


def _table(records: Sequence[PaperRecord]) -> str:
    reference = next((one for one in records if one.variant == one.reference and not one.failure), None)
    p_values = [None if reference is None or one is reference or one.failure else _p(one, reference) for one in records]
    head = ["Variant", f"{records[0].metric} [95 %]", "p", "Published", "Steps", "Seconds"]
    rows = [
        [_label(one), _result(one), p, _published(one), *_spent(one)]
        for one, p in zip(records, p_cells(p_values), strict=True)
    ]
    return "\n".join(
        [_caption(records), "", *markdown(head, rows), "", _verdict(compared(records)), *_remarks(records)]
    )


def _caption(records: Sequence[PaperRecord]) -> str:
    """What is compared, on what, and at which scale."""
    first, scale = records[0], records[0].scale
    sizes = dict.fromkeys(
        f"{one.size.layers} layers, {one.size.width} wide, {one.size.weights:,} weights"
        for one in records
        if one.size is not None
    )
    n_train = max(one.n_train for one in records)
    n_values = max(len(one.values) for one in records)
    backbone = str(first.bench.get("backbone", "")).partition("@")[0]
    begun = ", ".join(dict.fromkeys(one.begins_with for one in records if one.begins_with)) or backbone
    quick = " A quick run: its figures mean nothing." if first.is_quick else ""
    told = [
        f"**{first.paper}, {first.comparison}** (published: {first.source}), here on {first.bench['dataset']}.",
        f"Scale: at most {scale.steps:,} steps of {scale.batch} and {scale.seconds:,.0f} s,",
        f"{scale.training_tokens:,} tokens of a document in a step, {scale.max_words:,} words when it is judged;",
        f"learned from {n_train:,} examples, judged by {n_values:,};",
        f"{'; '.join(sizes) or 'no encoder'}, begun with {begun}; seed {first.origin.seed}.{quick}",
    ]
    return " ".join(told)


def _label(record: PaperRecord) -> str:
    return f"**{record.variant}**" if record.variant == record.reference else record.variant


def _result(record: PaperRecord) -> str:
    if record.failure:
        return "failed"
    low, high = bootstrap_interval(record.values, groups=record.groups, seed=record.origin.seed)
    return f"{record.mean:.3f} [{low:.3f}, {high:.3f}]"


def _published(record: PaperRecord) -> str:
    return "" if record.published is None else f"{record.published:g}"


def _spent(record: PaperRecord) -> list[str]:
    return ["", ""] if record.failure else [f"{record.n_steps:,} ({record.best_step:,})", f"{record.seconds:,.0f}"]


def _verdict(agreed: Agreement) -> str:
    if agreed.tau is None:
        return "The paper puts none of these variants in order."
    return (
        f"Orderings of the paper shared: {agreed.n_shared} of {agreed.n_pairs} ({agreed.n_reversed} reversed); "
        f"of those decided here {agreed.n_decided_shared} of {agreed.n_decided}. Kendall's tau {agreed.tau:.2f}."
    )


def _remarks(records: Sequence[PaperRecord]) -> list[str]:
    failed = [f"- {one.variant} failed: {one.failure}" for one in records if one.failure]
    return ["", *failed, ""] if failed else [""]


def _p(one: PaperRecord, other: PaperRecord) -> float:
    return randomization_p(one.values, other.values, groups=one.groups, seed=one.origin.seed)
