"""Measures linear classifiers on frozen document vectors; writes a run for each system.

For a corpus with classes, the protocol is that of DocSplit (2023, section 4 and appendix A): a frozen encoder, one
linear layer, accuracy and macro-F1 on test; also from 5 or 10 labels a class, as a mean over 10 draws. Departures: the
layer is fitted to its optimum, and documents are read whole, where the paper truncates them at 512 tokens. The program
in commit 722e759 also classified pairs.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

import click
import numpy as np

from benchmarks.measurement import Measurement, measurement
from benchmarks.probing import (
    Examples,
    FrozenVectors,
    LabelledCorpus,
    encoder_vectors,
    few_shot,
    fit_probe,
    judge,
    open_labelled,
    read_labelled,
    tfidf_vectors,
)
from benchmarks.program import log, names_of, read_numbers, task
from benchmarks.runs import Case, Run
from benchmarks.tables.encoders import RIGHT, ProbeDetails, probe_table
from engine.encoders.files import BUNDLED_NAME
from indexer.origin import Origin

SYSTEMS = ("document", "tfidf")


@dataclass(frozen=True)
class ProbeTrial:
    """The data and settings that are equal for every system, for a corpus with classes."""

    corpus: LabelledCorpus
    shots: tuple[int, ...]  # labels a class
    n_draws: int
    origin: Origin


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
    return Run(
        task="probe",
        dataset=f"{corpus.name}@{corpus.checksum}",
        system=vectors.system,
        encoder=vectors.encoder,
        settings={"c": c},
        fit_seconds=vectors.cost.seconds,
        n_tokens=vectors.cost.n_tokens,
        details=asdict(details),
        origin=trial.origin,
        cases=cases,
    )


def prepare(system: str, trial: ProbeTrial, encoder: str, work: Path) -> FrozenVectors:
    """The vectors of a system; those of an encoder are stored."""
    corpus = trial.corpus
    documents = read_labelled(corpus)
    if system == "tfidf":
        learned = set(corpus.splits["train"])
        texts = {document.doc_id: document.text for document in documents}
        return tfidf_vectors(texts, [doc_id for doc_id in texts if doc_id in learned])
    # TF-IDF alone needs neither torch nor FAISS.
    from benchmarks.prepare import prepared_documents

    name = f"{corpus.name}@{corpus.checksum}"
    with prepared_documents(name, documents, encoder, work, log=log) as ready:
        return encoder_vectors(ready)


@task
@click.argument("name", metavar="DATASET")
@click.option("--encoder", default=BUNDLED_NAME, help="Encoder of the document vectors.")
@click.option("--systems", default=",".join(SYSTEMS), callback=names_of(SYSTEMS), help="Systems, separated by commas.")
@click.option("--shots", default="5,10", callback=read_numbers, help="Labels per class, separated by commas.")
@click.option("--draws", default=10, type=click.IntRange(2), help="Draws of few labels.")
@measurement(seed="Seed of draws and of intervals.", encodes=True)
def main(
    call: Measurement,
    name: str,
    encoder: str,
    systems: tuple[str, ...],
    shots: tuple[int, ...],
    draws: int,
) -> None:
    """Learn classes from frozen document vectors, a run for each system.

    DATASET is news20, bbc_news, or a folder of corpus.jsonl.gz, labels.tsv (doc_id, label) and splits.json.

    \b
    Example:
        python -m benchmarks run probe bbc_news --encoder all-MiniLM-L6-v2 --shots 5,10
    """
    runs: list[Run] = []
    corpus = open_labelled(name, call.data)
    trial = ProbeTrial(corpus, shots, draws, call.origin)
    for system in systems:
        log(f"{name}: vectors of {system}")
        runs.append(measure(prepare(system, trial, encoder, call.work), trial))
    call.publish(runs, probe_table)
