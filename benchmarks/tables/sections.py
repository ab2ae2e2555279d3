"""Tables of sections: facets of matches, removed and inserted parts, and planted passages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np

from benchmarks.runs import Case, Run
from benchmarks.sections.faceted import FOLDS, Ranking
from benchmarks.sections.parts import OrderKind, Side
from benchmarks.sections.planting import LENGTHS, Damage, Position
from benchmarks.sections.removal import METHODS
from benchmarks.significance import randomization_p
from benchmarks.tables.pivot import Cell, grouped, interval, origins, p_cells, page, pivot, run_p

_FACETED = "nDCG@20"
KINDS = ("relevant", "irrelevant", "by chance")  # of hits, whose largest pair starts in the facet's section
_OTHERS = ("nDCG@10", "nDCG%20", "MAP")
_FACETS_NOTE = (
    "nDCG@10 and nDCG@20 have the gain 2^relevance - 1, over the pooled candidates. nDCG%20 (over a fifth of the "
    "pool, with the relevance as gain) and MAP (from relevance 2 on) are computed as by the authors of the set. "
    "Candidates with equal scores share the gain of their ranks. Values are means of the authors' two test folds, "
    "nDCG@20 also by fold and with a bootstrap interval. No setting was chosen on this set. Score 0: share of "
    "candidates with the score 0. p: two-sided paired randomisation test of nDCG@20, adjusted by Holm's method over "
    "the rankings. An abstract that is a query in several facets is drawn, or swapped, with all of them."
)
_FACETS_MODEL_NOTE = (
    " Model: the encoder's own section pairs, from sections of the facet in the query to sections of the facet in the "
    "candidate."
)
_LARGEST_NOTE = (
    "Share of hits among the candidates whose largest section pair starts in the facet's section, for relevant and "
    "irrelevant hits. By chance: share of that section in the weights of the query. In parentheses: number of "
    "queries. p: the same test over the queries that have both values, adjusted by Holm's method over each column."
)
_LARGEST_MODEL_NOTE = " Model: the largest pair is that of the encoder's own explanation."


@dataclass(frozen=True)
class FacetsDetails:
    """The details of a run of a ranking, besides its cases, each of which is a query in one facet."""

    datasets: dict[str, str]  # name@checksum of each facet's files
    n_documents: int
    zero_shares: dict[str, float]  # by facet: mean share of candidates with score 0


def facets_table(runs: Sequence[Run]) -> str:
    """For each encoder the rankings over all facets, then where largest pairs start, for relevant and other hits."""
    of_encoder = grouped(runs, lambda run: (run.encoder, run.dataset, run.origin.seed)).values()
    systems = [{run.system: run for run in own} for own in of_encoder]
    shown = [[own[ranking] for ranking in Ranking if ranking in own] for own in systems]

    def tests(rival: Ranking) -> list[str]:
        pairs = zip(shown, systems, strict=True)
        return [p for rows, own in pairs for p in p_cells([run_p(run, own.get(rival), _FACETED) for run in rows])]

    columns: dict[str, Cell[Run] | Sequence[str]] = {
        "Encoder (queries)": lambda run: f"{run.encoder_name} ({len(run.cases)})",
        "Ranked by": lambda run: run.system,
        **{name: partial(_fold_mean, name) for name in _OTHERS},
        "nDCG@20 [95 %]": _with_interval,
        "Folds": lambda run: " / ".join(f"{mean:.3f}" for mean in _fold_means(run, _FACETED)),
        "Score 0": lambda run: f"{np.mean(list(run.details_as(FacetsDetails).zero_shares.values())):.0%}",
        "p, evidence": tests(Ranking.EVIDENCE),
        "p, document": tests(Ranking.DOCUMENT),
    }
    named = [own[ranking] for own in systems for ranking in (Ranking.EVIDENCE, Ranking.MODEL) if ranking in own]
    has_model = any(run.system == Ranking.MODEL for run in runs)
    tables = [
        *[*pivot([run for rows in shown for run in rows], columns), "", _FACETS_NOTE + _FACETS_MODEL_NOTE * has_model],
        *["", *_largest(named), "", _LARGEST_NOTE + _LARGEST_MODEL_NOTE * has_model],
    ]
    return "\n".join([*tables, "", *origins(runs)])


def _fold_means(run: Run, measure: str) -> list[float]:
    """The mean over the queries of each fold; a fold without a query is left out."""
    values = [[case.values[measure] for case in run.cases if case.facts["fold"] == fold] for fold in FOLDS]
    return [float(np.mean(of_fold)) for of_fold in values if of_fold]


def _fold_mean(measure: str, run: Run) -> str:
    return f"{np.mean(_fold_means(run, measure)):.3f}"


def _with_interval(run: Run) -> str:
    _, _, ends = interval(run.values(_FACETED), groups=run.groups, seed=run.origin.seed).partition(" ")
    return f"{_fold_mean(_FACETED, run)} {ends}"


def _largest(runs: Sequence[Run]) -> list[str]:
    by_facet = [(run, grouped(run.cases, lambda case: case.labels["facet"])) for run in runs]
    rows = [(run, facet, cases) for run, own in by_facet for facet, cases in own.items()]

    def tests(rival: str) -> list[str]:
        of_run = ([_largest_p(cases, rival, run.origin.seed) for cases in own.values()] for run, own in by_facet)
        return [p for p_values in of_run for p in p_cells(p_values)]

    def share(kind: str) -> Cell[tuple[Run, str, list[Case]]]:
        def cell(row: tuple[Run, str, list[Case]]) -> str:
            known = [case.facts[kind] for case in row[2] if kind in case.facts]
            return f"{np.mean(known):.3f} ({len(known)})" if known else "none"

        return cell

    columns: dict[str, Cell[tuple[Run, str, list[Case]]] | Sequence[str]] = {
        "Encoder": lambda row: row[0].encoder_name + (", model" if row[0].system == Ranking.MODEL else ""),
        "Facet": lambda row: row[1],
        **{kind.capitalize(): share(kind) for kind in KINDS},
        **{f"p, {rival.removeprefix('by ')}": tests(rival) for rival in KINDS[1:]},
    }
    return pivot(rows, columns)


def _largest_p(cases: Sequence[Case], rival: str, seed: int) -> float:
    both = [case.facts for case in cases if KINDS[0] in case.facts and rival in case.facts]
    return randomization_p([facts[KINDS[0]] for facts in both], [facts[rival] for facts in both], seed=seed)


# The name in a run, and the name in the table with the better direction.
_MEASURES = {
    "deletion_area": "deletion, area (low)",
    "insertion_area": "insertion, area (high)",
    "comprehensiveness": "comprehensiveness (high)",
    "sufficiency": "sufficiency (low)",
    "deletion_rank_area": "deletion, area of 1/rank (low)",
    "insertion_rank_area": "insertion, area of 1/rank (high)",
}
_FAITHFULNESS_NOTE = (
    "Areas under the curves of score and reciprocal rank, over the share of tokens that are removed (deletion) or "
    "inserted alone (insertion). Parts come in the order of the breakdown, of the largest plain cosine, or at random. "
    "Scores are relative to the score of the whole document. Comprehensiveness and sufficiency: mean loss at 5, 10, "
    "20 and 50 % of tokens. Minus: the value of the breakdown minus that of another order, with a bootstrap interval. "
    "p: two-sided paired randomisation test over queries, with the mean over the hits of a query, adjusted by Holm's "
    "method over each column. Stored: rescored from stored vectors, with the document vector unchanged. Re-encoded: "
    "the remaining text is encoded again."
)
_FAITHFULNESS_MODEL_NOTE = (
    " Model: parts in the order of the encoder's own explanation, which is not a part of the score; the measured "
    "score is the same."
)
_RIVALS = (OrderKind.RANDOM, OrderKind.COSINE, OrderKind.MODEL)


@dataclass(frozen=True)
class FaithfulnessDetails:
    """The details of a run of one order of parts, besides its cases: queries, with values as means over hits."""

    method: str  # stored or re-encoded
    side: str  # query or target
    n_documents: int
    n_hits: int  # of all queries; a document with one part cannot be followed on that side
    shares: list[float]  # of tokens removed or inserted, from 0 to 1
    curves: dict[str, list[float]]  # means over queries, at `shares`


_Removal: TypeAlias = tuple[dict[str, Run], str]  # runs of one corpus, method and side by kind of order, and a measure


def faithfulness_table(runs: Sequence[Run]) -> str:
    """A row for each corpus, method, side and measure; with columns of the model if an encoder explains matches."""
    kinds = [kind for kind in OrderKind if kind is not OrderKind.MODEL or any(run.system == kind for run in runs)]
    rows = [[(orders, measure) for orders in places for measure in _MEASURES] for places in _by_corpus(runs)]
    columns: dict[str, Cell[_Removal] | Sequence[str]] = {
        "Corpus": lambda row: _broken(row).corpus,
        "Encoder": lambda row: _broken(row).encoder_name,
        "Removed from (queries)": _removed_from,
        "Measure": lambda row: _MEASURES[row[1]],
        **{kind.value: partial(_order_mean, kind) for kind in kinds},
    }
    for rival in (kind for kind in _RIVALS if kind in kinds):
        tested = (p_cells([run_p(_broken(row), row[0].get(rival), row[1]) for row in own]) for own in rows)
        columns[f"minus {rival} [95 %]"] = partial(_minus, rival)
        columns[f"minus {rival} p"] = [cell for cells in tested for cell in cells]
    note = _FAITHFULNESS_NOTE + _FAITHFULNESS_MODEL_NOTE * (OrderKind.MODEL in kinds)
    return page(pivot([row for own in rows for row in own], columns), [note], runs)


def _by_corpus(runs: Sequence[Run]) -> list[list[dict[str, Run]]]:
    """The orders of each corpus with its settings, by side and method; queries and stored vectors come first."""
    places = [f"{method}-{side}" for side in Side for method in METHODS]
    ordered = sorted(runs, key=lambda run: places.index(run.variant.partition("-")[2]))

    def corpus(run: Run) -> tuple[object, ...]:
        return run.dataset, run.split, run.encoder, run.variant.partition("-")[0], run.origin.seed

    return [
        [{run.system: run for run in own} for own in grouped(of_corpus, lambda run: run.variant).values()]
        for _, of_corpus in sorted(grouped(ordered, corpus).items(), key=lambda item: str(item[0]))
    ]


def _broken(row: _Removal) -> Run:
    return row[0][OrderKind.BREAKDOWN]


def _removed_from(row: _Removal) -> str:
    details = _broken(row).details_as(FaithfulnessDetails)
    return f"{details.side}, {details.method} ({len(_broken(row).cases)})"


def _order_mean(kind: OrderKind, row: _Removal) -> str:
    orders, measure = row
    return f"{np.mean(orders[kind].values(measure)):.3f}" if kind in orders else ""


def _minus(rival: OrderKind, row: _Removal) -> str:
    orders, measure = row
    if rival not in orders:
        return ""
    values = zip(_broken(row).values(measure), orders[rival].values(measure), strict=True)
    return interval([own - other for own, other in values], seed=_broken(row).origin.seed, sign="+")


EVIDENCE, DOCUMENT, MODEL = "evidence", "document", "model"  # the systems; the model names passages but does not rank
NAMED = ("is_first", "iou", "span_precision", "span_recall")
RANK, BEFORE = "rank", "rank_before"  # of the host among all documents, from 1
_GROUPS = {"damage": tuple(Damage), "position": tuple(Position), "length": LENGTHS}
_PLANTED_NOTE = (
    "The query is the document that a section was taken from. The host is the document that the section was planted "
    "in, as a copy or damaged; damaged sections lose words, or have their sentences shuffled, and have no heading. A "
    "host shares as few rare words with its query as possible. Rank of the host among all documents: share of "
    "plantings with rank 1, share with rank 10 or better, and median. The first row of each corpus is the host before "
    "planting. Named first: the largest pair is the planted section and its source. IoU, precision and recall: "
    "characters of the spans of that pair, compared with the characters of the passage. Hosts below rank 100 count as "
    "not named. In brackets: bootstrap interval over pairs of query and host. p: two-sided paired randomisation test "
    "of 1/rank over these pairs, evidence against the document vector, adjusted by Holm's method over the rows of a "
    "corpus."
)
_PLANTED_MODEL_NOTE = (
    " Model: the strongest pair in the encoder's own explanation, and for each chunk of its query section the best "
    "chunk of its target section; hosts below rank 100 by evidence count as not named. p, named: evidence against "
    "model, on the share named first, over pairs of query and host, adjusted by Holm's method over the rows of a "
    "corpus."
)


@dataclass(frozen=True)
class PlantedDetails:
    """The details of a run, besides its cases: plantings, labelled by damage, position and length of the host."""

    n_documents: int
    n_pairs: int
    mean_shared_words: float  # rare words that host and query share
    host_words: dict[str, list[int]]  # words of the shortest and of the longest host of a class


@dataclass(frozen=True)
class _Plantings:
    """A row: some plantings of one corpus and encoder, by system."""

    run: Run
    label: str
    rank: str  # the measure of ranks
    cases: Mapping[str, Sequence[Case]]

    def by_pair(self, system: str, value: Callable[[Case], float]) -> list[float]:
        """Means over the plantings of each query, since plantings of one query are not independent."""
        groups = grouped(self.cases[system], lambda case: case.group).values()
        return [float(np.mean([value(case) for case in own])) for own in groups]

    def p(self, rival: str, value: Callable[[Case], float]) -> float | None:
        """The p-value of evidence against a rival; None without it."""
        if rival not in self.cases:
            return None
        own, other = self.by_pair(EVIDENCE, value), self.by_pair(rival, value)
        return randomization_p(own, other, seed=self.run.origin.seed)

    @property
    def is_before(self) -> bool:
        return self.rank == BEFORE

    def reciprocal(self, case: Case) -> float:
        return 1 / case.values[self.rank]

    def share(self, system: str, value: Callable[[Case], float]) -> str:
        """The mean of a value over pairs of query and host, with its interval."""
        return interval(self.by_pair(system, value), seed=self.run.origin.seed)

    def ranks(self, system: str) -> np.ndarray:
        return np.array([case.values[self.rank] for case in self.cases[system]])


def planted_table(runs: Sequence[Run]) -> str:
    """Rows for each corpus: before planting, then by damage, by position and by length of the host."""
    of_corpus = grouped(runs, lambda run: (run.dataset, run.encoder, run.variant, run.origin.seed)).values()
    systems = [{run.system: run for run in own} for own in of_corpus]
    rows = [_plantings(own) for own in systems if own.keys() >= {EVIDENCE, DOCUMENT}]
    has_model = any(MODEL in own[0].cases for own in rows)
    p_ranks = [cell for own in rows for cell in p_cells([row.p(DOCUMENT, row.reciprocal) for row in own])]
    p_named = [
        cell for own in rows for cell in p_cells([None if row.is_before else row.p(MODEL, _is_first) for row in own])
    ]
    columns: dict[str, Cell[_Plantings] | Sequence[str]] = {
        "Corpus (pairs)": _corpus_of,
        "Encoder": lambda row: row.run.encoder_name,
        "Plantings": lambda row: row.label,
        **_rank_columns(EVIDENCE, ""),
        **_rank_columns(DOCUMENT, f", {DOCUMENT}"),
        "p": p_ranks,
        **_named_columns(EVIDENCE, ""),
        **(_named_columns(MODEL, f", {MODEL}") | {"p, named": p_named} if has_model else {}),
    }
    note = _PLANTED_NOTE + _PLANTED_MODEL_NOTE * has_model
    return page(pivot([row for own in rows for row in own], columns), [note], runs)


def _plantings(runs: Mapping[str, Run]) -> list[_Plantings]:
    run, every = runs[EVIDENCE], {system: own.cases for system, own in runs.items()}
    words = {of: f", {low:,} to {high:,} words" for of, (low, high) in run.details["host_words"].items()}
    rows = [_Plantings(run, "before planting", BEFORE, every)]
    for name, values in _GROUPS.items():
        for value in values:
            cases = {system: [case for case in own if case.labels[name] == value] for system, own in every.items()}
            rows.append(_Plantings(run, f"{name}: {value}{words.get(value, '')}", RANK, cases))
    return rows


def _corpus_of(row: _Plantings) -> str:
    return f"{row.run.corpus} ({row.run.details_as(PlantedDetails).n_pairs})"


def _rank_columns(system: str, suffix: str) -> dict[str, Cell[_Plantings]]:
    """Ranks of the host; an interval is shown for evidence alone."""

    def among_ten(row: _Plantings) -> str:
        if system != EVIDENCE:
            return f"{np.mean(row.ranks(system) <= 10):.3f}"
        return row.share(system, lambda case: float(case.values[row.rank] <= 10))

    return {
        f"Rank 1{suffix}": lambda row: f"{np.mean(row.ranks(system) == 1):.3f}",
        f"Rank <= 10{suffix or ' [95 %]'}": among_ten,
        f"Median{suffix}": lambda row: f"{np.median(row.ranks(system)):g}",
    }


def _named_columns(system: str, suffix: str) -> dict[str, Cell[_Plantings]]:
    """How well the passage is named; nothing before planting."""

    def of(cell: Cell[_Plantings]) -> Cell[_Plantings]:
        return lambda row: "" if row.is_before or system not in row.cases else cell(row)

    def mean(name: str) -> Cell[_Plantings]:
        return of(lambda row: f"{np.mean([case.values[name] for case in row.cases[system]]):.3f}")

    heads = zip(("IoU", "Precision", "Recall"), NAMED[1:], strict=True)
    return {
        f"Named first [95 %]{suffix}": of(lambda row: row.share(system, _is_first)),
        **{f"{head}{suffix}": mean(name) for head, name in heads},
    }


def _is_first(case: Case) -> float:
    return case.values["is_first"]
