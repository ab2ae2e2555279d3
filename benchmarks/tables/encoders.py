"""Tables of encoders: retrieval in equal parts of the corpora by each of them, and linear probes of their vectors."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import chain
from statistics import fmean, stdev

from benchmarks.datasets import TASKS
from benchmarks.metrics import PRIMARY
from benchmarks.runs import Run
from benchmarks.significance import randomization_p
from benchmarks.tables.pivot import (
    Cell,
    by_case,
    compared,
    grouped,
    interval,
    interval_text,
    origins,
    p_cells,
    page,
    pivot,
)
from engine.encoders.files import MINILM_NAME

DOCUMENT, EVIDENCE = "document", "evidence"  # systems
_NOTE = (
    "nDCG@10 [95 % bootstrap interval over queries] on a part of each corpus: {n_documents:,} documents, of which the "
    "first {n_words:,} words are read. Document vector: the cosine of document vectors; for a system without an "
    "encoder, its own score. Full score: the score of longmatch, with the chunk and document vectors of the encoder. "
    "Difference: the mean over all queries, to that of {base}, with p of a paired randomisation test, adjusted by "
    "Holm's method over a table. Several seeds of training: the mean of each query, with the standard deviation of the "
    "means. Tokens: read in training after the published parameters of {base}; for a scorer without them, words or "
    "trigrams of letters. Seconds: of indexing 1,000 documents of the parts, and the commit that was measured. Commits "
    "were measured at different times, not all on equal processors and as many threads: compare the seconds of one "
    "commit alone."
)


@dataclass(frozen=True)
class EncoderFacts:
    """The size of an encoder, and what it was trained on."""

    n_parameters: int
    begins_with: str = ""
    steps: int = 0
    n_tokens: int = 0  # read in training, repeated ones counted again; 0 if unknown or untrained


@dataclass(frozen=True)
class ArchitectureDetails:
    """The details of a run of architectures."""

    n_documents: int
    n_words: int  # read of each document, at most
    facts: EncoderFacts | None  # None for systems without parameters


class _System:
    """A row: an encoder or a scorer with its runs, by corpus and seed of training."""

    def __init__(self, label: str, runs: Sequence[Run]) -> None:
        self.label = label
        self.runs = grouped(runs, lambda run: run.corpus)
        self.values = {corpus: by_case(own, PRIMARY) for corpus, own in self.runs.items()}
        self.mean = fmean(fmean(values) for values in self.values.values())

    def all_values(self, corpora: Sequence[str]) -> list[float]:
        """The values of all queries."""
        return [value for corpus in corpora for value in self.values.get(corpus, ())]

    def cell(self, corpus: str) -> str:
        """The mean on a corpus with its interval; "-" where it was not measured."""
        return interval(self.values[corpus]) if corpus in self.values else "-"

    @property
    def spread(self) -> str:
        """The standard deviation of the mean over corpora between seeds; "" for one seed."""
        by_seed = zip(*(sorted(runs, key=lambda run: run.name) for runs in self.runs.values()), strict=False)
        means = [fmean(run.mean(PRIMARY) for run in runs) for runs in by_seed]
        return f" ± {stdev(means):.3f} ({len(means)} seeds)" if len(means) > 1 else ""

    @property
    def details(self) -> list[tuple[Run, ArchitectureDetails]]:
        """All runs with their details."""
        return [(run, run.details_as(ArchitectureDetails)) for run in chain.from_iterable(self.runs.values())]

    def fact(self, name: str) -> int:
        """A fact of the encoder; 0 if there is none."""
        facts = self.details[0][1].facts
        return int(getattr(facts, name)) if facts else 0

    @property
    def seconds(self) -> str:
        """Seconds for 1,000 documents, with the commits; "" where nothing was encoded."""
        encoded = [(run, details.n_documents) for run, details in self.details if run.n_tokens]
        seconds = 1000 * sum(run.fit_seconds for run, _ in encoded) / max(1, sum(n for _, n in encoded))
        commits = ", ".join(dict.fromkeys(run.origin.commit[:7] for run, _ in encoded))
        return f"{seconds:.0f} ({commits})" if seconds else ""


def architectures_table(runs: Sequence[Run]) -> str:
    """The table of document vectors, and that of full scores."""
    # Older runs also put the first targets of words into another order; see "A second stage" in RESULTS.md.
    runs = [run for run in runs if not run.details.get("depth")]
    tables = (
        _table("Document vector", [run for run in runs if run.system != EVIDENCE]),
        _table("Full score", [run for run in runs if run.system == EVIDENCE]),
    )
    details = runs[0].details_as(ArchitectureDetails)
    sizes = {"n_documents": details.n_documents, "n_words": details.n_words}
    note = _NOTE.format(**sizes, base=MINILM_NAME)
    return "\n".join([*(line for table in tables if table for line in (*table, "")), note, "", *origins(runs)])


def _table(title: str, runs: Sequence[Run]) -> list[str]:
    """The rows of systems, the best first; runs of a system that differ in the seed of training are one row."""
    if not runs:
        return []
    corpora = sorted({run.corpus for run in runs}, key=_place)
    systems = [_System(label, own) for label, own in grouped(runs, _label).items()]
    base = next((system.all_values(corpora) for system in systems if system.label == MINILM_NAME), [])
    complete = {system.label: system.all_values(corpora) for system in systems if system.label != MINILM_NAME}
    complete = {label: values for label, values in complete.items() if base and len(values) == len(base)}
    p_of = dict(zip(complete, p_cells([randomization_p(values, base) for values in complete.values()]), strict=True))

    def gain(system: _System) -> str:
        label = system.label
        return f"{fmean(complete[label]) - fmean(base):+.3f} ({p_of[label]})" if label in complete else ""

    n_cases = {run.corpus: len(run.cases) for run in runs}
    columns: dict[str, Cell[_System]] = {title: lambda system: system.label}
    for corpus in corpora:
        columns[f"{_whole(corpus)} ({n_cases[corpus]})"] = partial(_System.cell, corpus=corpus)
    columns |= {"Mean": lambda system: f"{system.mean:.3f}{system.spread}", "Difference (p)": gain}
    columns |= {
        "Parameters": lambda system: f"{n / 1e6:.1f} M" if (n := system.fact("n_parameters")) else "",
        "Tokens": lambda system: f"{n:,}" if (n := system.fact("n_tokens")) else "",
        "Seconds": lambda system: system.seconds,
    }
    return pivot(sorted(systems, key=lambda system: (-system.mean, system.label)), columns)


def _label(run: Run) -> str:
    """The encoder, or the scorer of pairs; seeds of training are joined."""
    return run.encoder_without_seed if run.system in (DOCUMENT, EVIDENCE) else run.system


def _whole(corpus: str) -> str:
    """The name of the corpus of which `corpus` is a part."""
    return next((name for name in TASKS if corpus.startswith(name)), corpus)


def _place(corpus: str) -> tuple[int, str]:
    whole = _whole(corpus)
    return (list(TASKS).index(whole) if whole in TASKS else len(TASKS)), corpus


RIGHT = "accuracy"  # of a case of a probe: 1 if it is classified correctly
_RIVAL = "tfidf"
_PROBE_NOTE = (
    "Logistic regression on frozen vectors (of pairs: on u, v, u * v and |u - v|; _cosine: a threshold instead); "
    "accuracy with a bootstrap interval over what is classified. N a class: accuracy / macro-F1 from N labels of each "
    "class, mean and standard deviation over draws. p: two-sided paired randomisation test of accuracy against the "
    "regression on TF-IDF, adjusted after Holm over the systems of a task. Pairs of one first document are drawn, or "
    "swapped, together. Several seeds of training: means over them, with the standard deviation of the accuracies; the "
    "interval and the test use the mean of a case, and N a class the mean of a draw."
)


@dataclass(frozen=True)
class ProbeDetails:
    """The details of a run of a probe, besides its cases."""

    is_pairs: bool  # whether cases are pairs
    n_classes: int
    n_train: int
    n_valid: int
    macro_f1: float  # on test, in [0, 1]
    few_shot: dict[str, dict[str, list[float]]]  # from labels a class and measure to the values of draws


@dataclass(frozen=True)
class _Probe:
    """A row: a system with its runs, one for each seed of training of its encoder."""

    runs: Sequence[Run]
    mean: Run  # of the seeds: the means of each case, of macro-F1 and of each draw
    details: ProbeDetails

    @property
    def task(self) -> tuple[object, ...]:
        """What is classified."""
        return self.mean.dataset, self.mean.variant, len(self.mean.cases)

    @property
    def name(self) -> str:
        """The task, with its number of cases."""
        return f"{self.mean.corpus}{'_pairs' * self.details.is_pairs} ({len(self.mean.cases):,})"

    @property
    def label(self) -> str:
        """The system, with the number of seeds if there are several."""
        run = self.mean
        return f"{run.system}, {run.encoder_without_seed}, {len(self.runs)} seeds" if len(self.runs) > 1 else run.label

    @property
    def accuracy(self) -> str:
        """The mean with its interval, and the deviation between seeds."""
        spread = f" ± {stdev(run.mean(RIGHT) for run in self.runs):.3f}" if len(self.runs) > 1 else ""
        return interval_text(self.mean, RIGHT) + spread

    def few(self, shot: str) -> str:
        """Accuracy and macro-F1 from few labels."""
        drawn = self.details.few_shot.get(shot, {}).values()
        return " / ".join(f"{statistics.mean(values):.3f} ± {stdev(values):.3f}" for values in drawn)


def probe_table(runs: Sequence[Run]) -> str:
    """Accuracy and macro-F1 with all labels and with few, by task; "" if there is no run."""
    ordered = sorted(runs, key=lambda run: (run.corpus, run.variant, not run.encoder, run.encoder, run.system))
    seeds = grouped(
        ordered,
        lambda run: (
            *(run.dataset, run.variant, run.system, run.encoder_without_seed),
            *(tuple(run.case_ids), tuple(run.details_as(ProbeDetails).few_shot)),
        ),
    )
    rows = [_probe(own) for own in seeds.values()]
    if not rows:
        return ""
    rivals = {row.task: row.mean for row in rows if row.mean.system == _RIVAL}
    tasks = {id(row.mean): row.task for row in rows}
    columns: dict[str, Cell[_Probe] | Sequence[str]] = {
        "Task (test)": lambda row: row.name,
        "System": lambda row: row.label,
        "Accuracy [95 %]": lambda row: row.accuracy,
        "Macro-F1": lambda row: f"{row.details.macro_f1:.3f}",
    }
    for shot in sorted({shot for row in rows for shot in row.details.few_shot}, key=int):
        columns[f"{shot} a class"] = partial(_Probe.few, shot=shot)
    columns["p, TF-IDF"] = compared([row.mean for row in rows], lambda run: rivals.get(tasks[id(run)]), RIGHT)
    return page(pivot(rows, columns), [_PROBE_NOTE], [run for row in rows for run in row.runs])


def _probe(runs: Sequence[Run]) -> _Probe:
    details = [run.details_as(ProbeDetails) for run in runs]
    drawn = {
        shot: {
            measure: [fmean(draw) for draw in zip(*(one.few_shot[shot][measure] for one in details), strict=True)]
            for measure in measures
        }
        for shot, measures in details[0].few_shot.items()
    }
    cases = [
        replace(case, values={RIGHT: value}) for case, value in zip(runs[0].cases, by_case(runs, RIGHT), strict=True)
    ]
    mean = replace(details[0], macro_f1=fmean(one.macro_f1 for one in details), few_shot=drawn)
    return _Probe(runs, replace(runs[0], cases=cases, details=asdict(mean)), mean)
