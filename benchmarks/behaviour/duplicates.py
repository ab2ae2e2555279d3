"""Plants near-duplicates in a corpus, and measures how many of these `pairs` finds by words alone, and in what time."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import click
import numpy as np

from benchmarks.behaviour.records import DuplicatesRecord
from benchmarks.datasets import DatasetError, checksum, open_dataset, read_documents
from benchmarks.markdown import markdown, origins
from benchmarks.measuring.measurement import Measurement, measurement
from benchmarks.measuring.timing import processor_seconds
from benchmarks.options import log
from benchmarks.program import program
from benchmarks.sections.planting import replace_words
from engine.index import Index
from engine.text.document import Document
from engine.text.segmentation import divide
from engine.views import Pairs
from indexer import build
from indexer.pairs.run import PairSettings, find_pairs

REPLACED = (0.05, 0.1, 0.2, 0.3)  # shares of words, in turn
LEAST = 0.5
SHOWN = (0.5, 0.6, 0.7, 0.8)
_COPY = "copy-of-"
_QUICK = 40, 4  # documents, of them planted; at most
_LOG_SECONDS = 20.0
_NOTE = (
    "Pairs are found by words alone. Near-duplicates are documents of the corpus with {shares} of their words "
    "replaced by words of the corpus, in turn, and without headings. Found: pairs of original and near-duplicate with "
    "at least the score. Pairs: all pairs with at least the score, including documents that the corpus has twice or "
    "in parts. Processor time of all threads: {pairs:,.0f} s for the pairs ({seconds:,.0f} s by the clock, while "
    "another program was running), {build:,.0f} s for the index."
)


def planted_duplicates(
    documents: Sequence[Document], n_planted: int, seed: int
) -> tuple[list[Document], list[tuple[str, float]]]:
    """Documents with near-duplicates of some of them, in a random order.

    Returns:
        All documents, and for each near-duplicate the doc_id of its original and the share of words replaced.

    Raises:
        DatasetError: there are fewer documents than `n_planted`.
    """
    if n_planted > len(documents):
        raise DatasetError(f"{n_planted:,} near-duplicates need as many documents, not {len(documents):,}; plant fewer")
    rng = np.random.default_rng(seed)
    words = sorted({word for one in documents for word in one.text.split()})
    chosen = rng.permutation(len(documents))[:n_planted].tolist()
    whole, planted = list(documents), list[tuple[str, float]]()
    for number, at in enumerate(chosen):
        original, share = documents[at], REPLACED[number % len(REPLACED)]
        text = replace_words(original.text, share, words, rng)
        whole.append(replace(original, doc_id=_COPY + original.doc_id, text=text, sections=divide(text), pages=()))
        planted.append((original.doc_id, share))
    return [whole[at] for at in rng.permutation(len(whole)).tolist()], planted


def scores_of(pairs: Pairs, planted: Sequence[tuple[str, float]]) -> list[float]:
    """The score of each pair of original and near-duplicate; 0 where it is not listed."""
    found = {frozenset((pair.first, pair.second)): pair.score for pair in pairs}
    return [found.get(frozenset((original, _COPY + original)), 0.0) for original, _ in planted]


def duplicates_table(records: Sequence[DuplicatesRecord]) -> str:
    """A row for each score."""
    head = ["Corpus", "Documents", "Score", "Found", *(f"Found, {share:.0%} replaced" for share in REPLACED), "Pairs"]
    lines = []
    for record in records:
        rows = []
        for least in SHOWN:
            counts = [_found(record, least, None), *(_found(record, least, share) for share in REPLACED)]
            n_pairs = sum(score >= least for score in record.scores)
            corpus = ", ".join(one.partition("@")[0] for one in record.corpora)
            rows.append([corpus, f"{record.n_documents:,}", f"{least:g}", *counts, f"{n_pairs:,}"])
        shares = ", ".join(f"{share:.0%}" for share in REPLACED)
        note = _NOTE.format(
            shares=shares, pairs=record.cpu_seconds, seconds=record.seconds, build=record.build_cpu_seconds
        )
        lines += [*markdown(head, rows), "", note, ""]
    return "\n".join([*lines, *origins(records)])


def _found(record: DuplicatesRecord, least: float, share: float | None) -> str:
    columns = zip(record.planted["replaced"], record.planted["score"], strict=True)
    own = [float(score) for replaced, score in columns if share is None or replaced == share]
    return f"{sum(score >= least for score in own)} of {len(own)}"


def _log_slowly() -> Callable[[str, int, int], None]:
    last = time.monotonic()

    def show(what: str, n_done: int, n: int) -> None:
        nonlocal last
        if time.monotonic() - last >= _LOG_SECONDS:
            last = time.monotonic()
            log(f"{n_done:,} of {n:,} documents {what}")

    return show


@program
@click.argument("names", nargs=-1, required=True, metavar="DATASET...")
@click.option("--documents", "n_documents", default=5_000, type=click.IntRange(4), help="Documents of all DATASETs.")
@click.option("--planted", "n_planted", default=100, type=click.IntRange(1), help="Documents with a near-duplicate.")
@measurement(seed="Seed of draw, words and order.", quick="40 documents at most, 4 of them planted", data=True)
def main(run: Measurement, names: tuple[str, ...], n_documents: int, n_planted: int) -> None:
    """Plant near-duplicates in documents of one or more DATASETs, and find them by pairs of words alone.

    \b
    Example:
        python -m benchmarks study duplicates proposals wikipedia_seealso
    """
    if run.is_quick:
        n_documents, n_planted = min(n_documents, _QUICK[0]), min(n_planted, _QUICK[1])
    documents: list[Document] = []
    labels = []
    for name in names:
        dataset = open_dataset(name, run.data)
        labels.append(f"{dataset.name}@{checksum(dataset)}")
        documents += read_documents(dataset)
    documents = documents[: n_documents - n_planted]
    if len(documents) < n_documents - n_planted:
        raise DatasetError(f"{', '.join(names)} have {len(documents):,} documents; name more, or pass --documents")
    corpus, planted = planted_duplicates(documents, n_planted, run.seed)
    with tempfile.TemporaryDirectory(prefix="longmatch-") as folder:
        path, before = Path(folder) / "duplicates.lm", processor_seconds()
        build(path, corpus, encode="none")
        built = processor_seconds()
        log(f"indexed {len(corpus):,} documents")
        with Index.open(path) as index:
            after = processor_seconds()
            pairs = find_pairs(index, PairSettings(least=LEAST), progress=_log_slowly())
            cpu = processor_seconds() - after
    scores = scores_of(pairs, planted)
    record = DuplicatesRecord(
        corpora=labels,
        n_documents=len(corpus),
        n_characters=sum(len(one.text) for one in corpus),
        least=LEAST,
        n_pairs=len(pairs),
        planted={
            "original": [original for original, _ in planted],
            "replaced": [share for _, share in planted],
            "score": [round(score, 6) for score in scores],
        },
        scores=[round(pair.score, 6) for pair in pairs],
        build_cpu_seconds=round(built - before, 1),
        cpu_seconds=round(cpu, 1),
        seconds=round(pairs.seconds, 1),
        is_quick=run.is_quick,
        origin=run.origin,
    )
    run.publish([record], duplicates_table)
