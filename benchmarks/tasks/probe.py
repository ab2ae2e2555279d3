"""Measures linear classifiers on frozen document vectors; writes a run for each system.

For a corpus with classes, the protocol is that of DocSplit (2023, section 4 and appendix A): a frozen encoder, one
linear layer, accuracy and macro-F1 on test; also from 5 or 10 labels a class, as a mean over 10 draws. Departures: the
layer is fitted to its optimum, and documents are read whole; `--max-words` truncates them, as the paper does at 512
tokens. The program in commit 722e759 also classified pairs.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path

import click
import numpy as np

from benchmarks.markdown import compared, interval_text, markdown, origins
from benchmarks.measuring.measurement import Measurement, measurement
from benchmarks.probing import (
    Examples,
    FrozenVectors,
    LabelledCorpus,
    encoder_vectors,
    few_shot,
    fit_probe,
    judge,
    open_labelled,
    part_of,
    read_labelled,
    tfidf_vectors,
)
from benchmarks.program import log, names_of, read_numbers, task
from benchmarks.quick import SUFFIX, first_words
from benchmarks.runs import Case, Run
from benchmarks.systems import Settings
from engine.encoders.files import BUNDLED_NAME
from indexer.origin import Origin

SYSTEMS = ("document", "tfidf")
RIGHT = "accuracy"  # of a case: 1 if it is classified correctly
QUICK_PER_CLASS = {"train": 12, "valid": 4, "test": 6}
QUICK_DRAWS = 3
_RIVAL = "tfidf"
_NOTE = (
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
    max_words: int  # most words read of a document; 0 for all
    n_classes: int
    n_train: int
    n_valid: int
    macro_f1: float  # on test, in [0, 1]
    few_shot: dict[str, dict[str, list[float]]]  # from labels a class and measure to the values of draws


@dataclass(frozen=True)
class ProbeTrial:
    """The data and settings that are equal for every system, for a corpus with classes."""

    corpus: LabelledCorpus
    shots: tuple[int, ...]  # labels a class
    n_draws: int
    max_words: int  # 0 for all
    origin: Origin
    is_quick: bool = False


def measure(vectors: FrozenVectors, trial: ProbeTrial) -> Run:
    """Fit classifiers to all training labels, then to few, and judge them on test."""
    corpus = trial.corpus
    train, valid, test = (
        Examples(vectors.of(corpus.splits[split]), corpus.labels_of(split)) for split in ("train", "valid", "test")
    )
    probe, c = fit_probe(train, valid)
    predicted = probe.predict(test.vectors)
    draws = {n: few_shot(train, test, n, trial.n_draws, trial.origin.seed) for n in trial.shots}
    details = ProbeDetails(
        is_pairs=False,
        max_words=trial.max_words,
        n_classes=len(corpus.classes),
        n_train=len(train.labels),
        n_valid=len(valid.labels),
        macro_f1=round(judge(test.labels, predicted)["macro_f1"], 4),
        few_shot={
            str(n): {name: [round(value, 4) for value in values] for name, values in asdict(drawn).items()}
            for n, drawn in draws.items()
        },
    )
    right = predicted == np.array(test.labels)
    cases = [
        Case(id=doc_id, values={RIGHT: float(one)}) for doc_id, one in zip(corpus.splits["test"], right, strict=True)
    ]
    name = f"{corpus.name}{SUFFIX * trial.is_quick}@{corpus.checksum}"
    return _run(name, vectors.system, vectors, {"c": c}, details, cases, trial.origin)


def _run(
    dataset: str,
    system: str,
    vectors: FrozenVectors,
    settings: Settings,
    details: ProbeDetails,
    cases: list[Case],
    origin: Origin,
) -> Run:
    words = f"first{details.max_words}" if details.max_words else ""
    return Run(
        task="probe",
        dataset=dataset,
        system=system,
        encoder=vectors.encoder,
        settings=settings,
        variant="-".join(filter(None, ("pairs" * details.is_pairs, words))),
        fit_seconds=vectors.cost.seconds,
        n_tokens=vectors.cost.n_tokens,
        details=asdict(details),
        origin=origin,
        cases=cases,
    )


def prepare(system: str, trial: ProbeTrial, encoder: str, work: Path) -> FrozenVectors:
    """The vectors of a system; those of an encoder are stored."""
    corpus, words = trial.corpus, f"-first{trial.max_words}" if trial.max_words else ""
    documents = read_labelled(corpus)
    if trial.max_words:
        documents = (first_words(document, trial.max_words) for document in documents)
    if system == "tfidf":
        learned = set(corpus.splits["train"])
        texts = {document.doc_id: document.text for document in documents}
        return tfidf_vectors(texts, [doc_id for doc_id in texts if doc_id in learned])
    # TF-IDF alone needs neither torch nor FAISS.
    from benchmarks.prepare import prepared_documents

    quick = f"-quick{trial.origin.seed}" if trial.is_quick else ""
    name = f"{corpus.name}@{corpus.checksum}{words}{quick}"
    with prepared_documents(name, documents, encoder, work, log=log) as ready:
        return encoder_vectors(ready)


def probe_table(runs: Sequence[Run]) -> str:
    """Accuracy and macro-F1 with all labels and with few, by task; "" if there is no run."""
    of: defaultdict[tuple[object, ...], list[Run]] = defaultdict(list)
    for run in sorted(runs, key=lambda run: (run.corpus, run.variant, not run.encoder, run.encoder, run.system)):
        same = (tuple(run.case_ids), tuple(run.details_as(ProbeDetails).few_shot))
        of[run.dataset, run.variant, run.system, run.encoder_without_seed, *same].append(run)
    seeds = list(of.values())
    shown = [_mean(own) for own in seeds]
    detailed = [run.details_as(ProbeDetails) for run in shown]
    shots = sorted({shot for details in detailed for shot in details.few_shot}, key=int)
    rivals = {(run.dataset, run.variant, len(run.cases)): run for run in shown if run.system == _RIVAL}
    p_values = compared(shown, lambda run: rivals.get((run.dataset, run.variant, len(run.cases))), RIGHT)
    head = ["Task (test)", "System", "Accuracy [95 %]", "Macro-F1", *(f"{n} a class" for n in shots), "p, TF-IDF"]
    rows = []
    for own, run, details, p in zip(seeds, shown, detailed, p_values, strict=True):
        words = f", first {details.max_words} words" if details.max_words else ""
        name = f"{run.corpus}{'_pairs' * details.is_pairs} ({len(run.cases):,}{words})"
        label, accuracy = run.label, interval_text(run, RIGHT)
        if len(own) > 1:
            label = f"{run.system}, {run.encoder_without_seed}, {len(own)} seeds"
            accuracy += f" ± {statistics.stdev(one.mean(RIGHT) for one in own):.3f}"
        few = [_few(details.few_shot.get(shot, {})) for shot in shots]
        rows.append([name, label, accuracy, f"{details.macro_f1:.3f}", *few, p])
    return "\n".join([*markdown(head, rows), "", _NOTE, "", *origins(list(chain(*seeds)))]) if shown else ""


def _mean(runs: Sequence[Run]) -> Run:
    """One run of the seeds of training of an encoder: the means of each case, of macro-F1 and of each draw."""
    details = [run.details_as(ProbeDetails) for run in runs]
    first = details[0]
    drawn = {
        shot: {
            measure: [
                statistics.fmean(draw) for draw in zip(*(one.few_shot[shot][measure] for one in details), strict=True)
            ]
            for measure in measures
        }
        for shot, measures in first.few_shot.items()
    }
    macro_f1 = statistics.fmean(one.macro_f1 for one in details)
    cases = [
        replace(case[0], values={RIGHT: statistics.fmean(one.values[RIGHT] for one in case)})
        for case in zip(*(run.cases for run in runs), strict=True)
    ]
    return replace(runs[0], cases=cases, details=asdict(replace(first, macro_f1=macro_f1, few_shot=drawn)))


def _few(drawn: Mapping[str, Sequence[float]]) -> str:
    return " / ".join(f"{statistics.mean(values):.3f} ± {statistics.stdev(values):.3f}" for values in drawn.values())


@task
@click.argument("name", metavar="DATASET")
@click.option("--encoder", default=BUNDLED_NAME, help="Encoder of the document vectors.")
@click.option("--systems", default=",".join(SYSTEMS), callback=names_of(SYSTEMS), help="Systems, separated by commas.")
@click.option("--shots", default="5,10", callback=read_numbers, help="Labels per class, separated by commas.")
@click.option("--draws", default=10, type=click.IntRange(2), help="Draws of few labels.")
@click.option("--max-words", default=0, type=click.IntRange(0), help="Limit of words read per document; 0 reads all.")
@measurement(
    seed="Seed of draws, of the part and of intervals.",
    quick="A few documents of each class and few draws",
    encodes=True,
)
def main(
    call: Measurement,
    name: str,
    encoder: str,
    systems: tuple[str, ...],
    shots: tuple[int, ...],
    draws: int,
    max_words: int,
) -> None:
    """Learn classes from frozen document vectors, a run for each system.

    DATASET is news20, bbc_news, or a folder of corpus.jsonl.gz, labels.tsv (doc_id, label) and splits.json.

    \b
    Example:
        python -m benchmarks run probe bbc_news --encoder all-MiniLM-L6-v2 --shots 5,10
    """
    runs: list[Run] = []
    corpus = open_labelled(name, call.data)
    if call.is_quick:
        corpus, draws = part_of(corpus, QUICK_PER_CLASS, call.seed), min(draws, QUICK_DRAWS)
    trial = ProbeTrial(corpus, shots, draws, max_words, call.origin, call.is_quick)
    for system in systems:
        log(f"{name}: vectors of {system}")
        runs.append(measure(prepare(system, trial, encoder, call.work), trial))
    call.publish(runs, probe_table)
