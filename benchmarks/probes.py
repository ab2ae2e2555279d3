"""Measures what a linear classifier learns from frozen document vectors, with all labels and with few.

The protocol is that of DocSplit (2023, section 4 and appendix A): a frozen encoder,
one linear layer, accuracy and macro-F1 on test; and the same from 5 or 10 labels a
class, a mean over 10 draws. Departures: the layer is fitted to its optimum, see
`benchmarks.probing.linear_probe`, and documents are read whole. `--max-words` cuts them, as
the paper does at 512 tokens.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import click
import numpy as np

from benchmarks.cut import first_words
from benchmarks.options import data_option, log, names_of, out_option, read_numbers, work_option
from benchmarks.probing.frozen_vectors import FrozenVectors, encoder_vectors, tfidf_vectors
from benchmarks.probing.labelled import LabelledCorpus, open_labelled, part_of, read_labelled
from benchmarks.probing.linear_probe import Examples, few_shot, fit_probe, judge
from benchmarks.probing.record import ProbeRecord
from benchmarks.probing.tables import probe_table
from benchmarks.program import origin_of, program
from benchmarks.record_file import RESULTS, write_record
from engine.document import Document
from engine.encoders.backbone.weights import BUNDLED_NAME
from indexer.training.origin import Origin

SYSTEMS = ("document", "tfidf")
QUICK_PER_CLASS = {"train": 12, "valid": 4, "test": 6}
QUICK_DRAWS = 3


@dataclass(frozen=True)
class ProbeTrial:
    """What every system is asked alike."""

    corpus: LabelledCorpus
    shots: tuple[int, ...]  # labels a class
    n_draws: int
    max_words: int  # read of a document; 0 for all
    is_quick: bool
    origin: Origin


def measure(vectors: FrozenVectors, trial: ProbeTrial) -> ProbeRecord:
    """Learn from all training labels, then from few, and judge on test."""
    corpus = trial.corpus
    train, valid, test = (
        Examples(vectors.of(corpus.splits[split]), corpus.labels_of(split)) for split in ("train", "valid", "test")
    )
    probe, c = fit_probe(train, valid)
    predicted = probe.predict(test.vectors)
    draws = {n: few_shot(train, test, n, trial.n_draws, trial.origin.seed) for n in trial.shots}
    return ProbeRecord(
        task=corpus.name,
        dataset=f"{corpus.name}@{corpus.checksum}",
        system=vectors.system,
        encoder=vectors.encoder,
        settings={"c": c, "max_words": trial.max_words},
        is_quick=trial.is_quick,
        n_classes=len(corpus.classes),
        n_train=len(train.labels),
        n_valid=len(valid.labels),
        n_test=len(test.labels),
        metrics={name: round(value, 4) for name, value in judge(test.labels, predicted).items()},
        wrong=np.flatnonzero(predicted != np.array(test.labels)).tolist(),
        groups=[],
        few_shot={
            str(n): {name: [round(value, 4) for value in values] for name, values in asdict(drawn).items()}
            for n, drawn in draws.items()
        },
        n_tokens=vectors.cost.n_tokens,
        seconds=vectors.cost.seconds,
        origin=trial.origin,
    )


def documents_of(trial: ProbeTrial) -> Iterator[Document]:
    """Stream the documents of the trial as they are to be read."""
    for document in read_labelled(trial.corpus):
        yield first_words(document, trial.max_words) if trial.max_words else document


def prepare(system: str, trial: ProbeTrial, encoder: str, work: Path) -> FrozenVectors:
    """The vectors of a system, the encoder's made now or in an earlier run.

    Raises:
        DatasetError: a document could not be encoded.
        MissingExtra: scikit-learn is not installed.
    """
    if system == "tfidf":
        texts = {document.doc_id: document.text for document in documents_of(trial)}
        return tfidf_vectors(texts, trial.corpus.splits["train"])
    # TF-IDF alone needs neither torch nor FAISS.
    from benchmarks.prepare import prepared_documents

    cut = f"-first{trial.max_words}" if trial.max_words else ""
    part = f"-quick{trial.origin.seed}" if trial.is_quick else ""
    name = f"{trial.corpus.name}@{trial.corpus.checksum}{cut}{part}"
    with prepared_documents(name, documents_of(trial), encoder, work, log=log) as ready:
        return encoder_vectors(ready)


@program
@click.argument("name", metavar="DATASET")
@click.option("--encoder", default=BUNDLED_NAME, show_default=True, help="Whose document vectors are probed.")
@click.option(
    "--systems", default=",".join(SYSTEMS), show_default=True, callback=names_of(SYSTEMS), help="Separated by commas."
)
@click.option("--shots", default="5,10", show_default=True, callback=read_numbers, help="Labels a class, by commas.")
@click.option("--draws", default=10, show_default=True, type=click.IntRange(2), help="Of few labels.")
@click.option("--max-words", default=0, type=click.IntRange(0), help="Read no more of a document; 0 reads all.")
@click.option("--quick", is_flag=True, help="A few documents of each class, and few draws.")
@click.option("--seed", default=0, show_default=True, help="Of draws, of the part and of intervals.")
@data_option
@work_option
@out_option
@click.pass_context
def main(
    context: click.Context,
    name: str,
    encoder: str,
    systems: tuple[str, ...],
    shots: tuple[int, ...],
    draws: int,
    max_words: int,
    quick: bool,
    seed: int,
    data: Path,
    work: Path,
    out: Path | None,
) -> None:
    """Probe document vectors by classification on DATASET, and write a record for each system.

    DATASET is news20, bbc_news, or a folder of corpus.jsonl.gz, labels.tsv (doc_id, label) and splits.json.

    \b
    Example:
        python -m benchmarks study probes bbc_news --encoder all-MiniLM-L6-v2 --shots 5,10
    """
    out = out or (None if quick else RESULTS)
    corpus = open_labelled(name, data)
    if quick:
        corpus = part_of(corpus, QUICK_PER_CLASS, seed)
    n_draws = min(draws, QUICK_DRAWS) if quick else draws
    trial = ProbeTrial(corpus, shots, n_draws, max_words, quick, origin_of(context, seed))
    records = [_measured(system, trial, encoder, work, out) for system in systems]
    click.echo(probe_table(records))


def _measured(system: str, trial: ProbeTrial, encoder: str, work: Path, out: Path | None) -> ProbeRecord:
    vectors = prepare(system, trial, encoder, work)
    log(f"{trial.corpus.name}: {len(trial.corpus.labels):,} vectors of {system} are ready")
    record = measure(vectors, trial)
    if out:
        write_record(record, out)
    return record
