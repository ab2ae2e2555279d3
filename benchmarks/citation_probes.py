"""Measures whether frozen document vectors tell that one document cites another, in the manner of LRA's AAN task.

Pairs are built by the AAN protocol, as many that match as not, and no document of test
is in train, see `benchmarks.pairs.building`. Of each kind of vector two classifiers are
measured: a probe and a threshold on the cosine, see `benchmarks.probing.pair_probe`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from benchmarks.cut import first_words
from benchmarks.datasets import Dataset, checksum, open_dataset, read_documents
from benchmarks.options import data_option, log, names_of, out_option, work_option
from benchmarks.pairs.building import PROTOCOLS, build_pairs
from benchmarks.pairs.relations import read_relations
from benchmarks.pairs.scorer import Pair
from benchmarks.pairs.splitting import PairSplits, Split, SplitRule
from benchmarks.probes import SYSTEMS
from benchmarks.probing.frozen_vectors import FrozenVectors, encoder_vectors, tfidf_vectors
from benchmarks.probing.linear_probe import judge
from benchmarks.probing.pair_probe import Prediction, by_cosine, by_probe, labels_of
from benchmarks.probing.record import ProbeRecord
from benchmarks.probing.tables import probe_table
from benchmarks.program import origin_of, program
from benchmarks.record_file import RESULTS, write_record
from engine.document import Document
from engine.encoders.backbone.weights import BUNDLED_NAME
from indexer.training.origin import Origin

PROTOCOL = "aan"
QUICK_MOST = 30  # matching pairs of a split
QUICK_WORDS = 300


@dataclass(frozen=True)
class CitationTrial:
    """What every system is asked alike."""

    dataset: Dataset
    pairs: PairSplits
    most: int | None  # matching pairs of a split
    is_quick: bool
    origin: Origin


def measure(vectors: FrozenVectors, trial: CitationTrial) -> list[ProbeRecord]:
    """The record of the probe, and that of the threshold."""
    predictions = {"": by_probe(trial.pairs, vectors), "_cosine": by_cosine(trial.pairs, vectors)}
    return [_record(vectors, f"{vectors.system}{suffix}", one, trial) for suffix, one in predictions.items()]


def _record(vectors: FrozenVectors, system: str, prediction: Prediction, trial: CitationTrial) -> ProbeRecord:
    dataset = trial.dataset
    labels = labels_of(trial.pairs[Split.TEST])
    numbers: dict[str, int] = {}  # of the first documents, each of which is in as many pairs that match as not
    return ProbeRecord(
        task=f"{dataset.name}_pairs",
        dataset=f"{dataset.name}@{checksum(dataset)}",
        system=system,
        encoder=vectors.encoder,
        settings={
            "protocol": PROTOCOL,
            "split": SplitRule.DOCUMENT.value,
            "setting": round(prediction.setting, 6),
            "most": trial.most or 0,
            "max_words": QUICK_WORDS if trial.is_quick else 0,
        },
        is_quick=trial.is_quick,
        n_classes=2,
        n_train=len(trial.pairs[Split.TRAIN]),
        n_valid=len(trial.pairs[Split.VALID]),
        n_test=len(labels),
        metrics={name: round(value, 4) for name, value in judge(labels, prediction.predicted).items()},
        groups=[numbers.setdefault(pair.first, len(numbers)) for pair in trial.pairs[Split.TEST]],
        wrong=[
            place for place, both in enumerate(zip(labels, prediction.predicted, strict=True)) if both[0] != both[1]
        ],
        few_shot={},
        n_tokens=vectors.cost.n_tokens,
        seconds=vectors.cost.seconds,
        origin=trial.origin,
    )


def prepare(system: str, trial: CitationTrial, encoder: str, work: Path) -> FrozenVectors:
    """The vectors of a system; an encoder's are those of the index that retrieval uses too.

    Raises:
        DatasetError: a document could not be encoded.
        MissingExtra: scikit-learn is not installed.
    """
    if system == "tfidf":
        texts = {document.doc_id: document.text for document in _documents(trial)}
        learned = _named(trial.pairs[Split.TRAIN])
        return tfidf_vectors(texts, [doc_id for doc_id in texts if doc_id in learned])
    # TF-IDF alone needs neither torch nor FAISS.
    from benchmarks.prepare import prepared_documents, prepared_index

    name = f"{trial.dataset.name}@{checksum(trial.dataset)}-pairs{trial.most}-quick{trial.origin.seed}"
    with (
        prepared_documents(name, _documents(trial), encoder, work, log=log)
        if trial.is_quick
        else prepared_index(trial.dataset, encoder, work, log=log)
    ) as ready:
        return encoder_vectors(ready)


def _documents(trial: CitationTrial) -> Iterator[Document]:
    """Those of the pairs, as they are to be read."""
    wanted = _named(pair for pairs in trial.pairs.values() for pair in pairs)
    for document in read_documents(trial.dataset):
        if document.doc_id in wanted:
            yield first_words(document, QUICK_WORDS) if trial.is_quick else document


def _named(pairs: Iterable[Pair]) -> set[str]:
    return {doc_id for pair in pairs for doc_id in (pair.first, pair.second)}


@program
@click.argument("name", metavar="DATASET")
@click.option("--encoder", default=BUNDLED_NAME, show_default=True, help="Whose document vectors are probed.")
@click.option(
    "--systems", default=",".join(SYSTEMS), show_default=True, callback=names_of(SYSTEMS), help="Separated by commas."
)
@click.option("--most", type=click.IntRange(2), help="Matching pairs of a split, at most; all by default.")
@click.option("--quick", is_flag=True, help="A few pairs, and the first words of their documents.")
@click.option("--seed", default=0, show_default=True, help="Of the pairs that are drawn, and of intervals.")
@data_option
@work_option
@out_option
@click.pass_context
def main(
    context: click.Context,
    name: str,
    encoder: str,
    systems: tuple[str, ...],
    most: int | None,
    quick: bool,
    seed: int,
    data: Path,
    work: Path,
    out: Path | None,
) -> None:
    """Probe document vectors for citations on DATASET, and write two records for each system.

    DATASET is a retrieval task by name or a folder, as in benchmarks.retrieval.

    \b
    Example:
        python -m benchmarks study citation_probes clscisumm --encoder all-MiniLM-L6-v2
    """
    out = out or (None if quick else RESULTS)
    most = min(most or QUICK_MOST, QUICK_MOST) if quick else most
    dataset = open_dataset(name, data)
    relations = read_relations(dataset, [document.doc_id for document in read_documents(dataset)])
    pairs = build_pairs(relations, PROTOCOLS[PROTOCOL], SplitRule.DOCUMENT, seed=seed, most=most).splits
    trial = CitationTrial(dataset, pairs, most, quick, origin_of(context, seed))
    records = []
    for system in systems:
        vectors = prepare(system, trial, encoder, work)
        log(f"{dataset.name}: vectors of {system} are ready, {len(pairs[Split.TEST]):,} test pairs")
        records += measure(vectors, trial)
    if out:
        for record in records:
            write_record(record, out)
    click.echo(probe_table(records))
