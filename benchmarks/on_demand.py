"""Measures encoding on demand: quality and encoded tokens, by the number of candidates and of queries asked."""

from __future__ import annotations

import random
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click

from benchmarks.datasets import Qrels, checksum, open_dataset, read_documents, read_qrels, read_queries
from benchmarks.demand.record import DemandRecord, DemandRow
from benchmarks.demand.recorded import RecordedEncoder
from benchmarks.demand.table import demand_table
from benchmarks.metrics import evaluate, means
from benchmarks.options import data_option, tell, work_option
from benchmarks.origin import command_line
from benchmarks.prepare import prepared_index
from benchmarks.quick import quick_part
from benchmarks.records import RESULTS, write_record
from engine.allowance import Allowance
from engine.document import Document
from engine.encoders.weights import BUNDLED_NAME
from engine.errors import EngineError
from engine.index import Index
from engine.origin import describe_origin
from engine.result import Hit
from engine.scoring.evidence import Scoring
from indexer.builder import EncodeNow, build

CANDIDATES = (20, 50, 200)
DEPTH = 100  # of rankings
_DEEPER = 300  # hits that other rules order
_MARKS = (1, 10, 100)  # queries after which tokens are counted, and after all


@dataclass(frozen=True)
class Asked:
    """What every way is asked alike."""

    queries: list[Document]
    qrels: Qrels


@contextmanager
def later_index(full: Index, documents: Sequence[Document], encode: EncodeNow) -> Iterator[Index]:
    """An index of documents as `encode` leaves it, whose vectors are looked up in the full one."""
    folder = Path(tempfile.mkdtemp(prefix="longmatch-"))
    try:
        encoder = RecordedEncoder(full)
        build(folder / "x.lm", documents, encoder=encoder, encode=encode)
        with Index.open(folder / "x.lm", encoder=encoder, store=False) as index:
            yield index
    finally:
        shutil.rmtree(folder)


def measure(index: Index, asked: Asked, way: str, candidates: int | None) -> DemandRow:
    """Ask all queries of an index, one after another; what one encoded stays for the next."""
    run: dict[str, list[str]] = {}
    others: dict[str, dict[str, list[str]]] = {"scaled": {}, "candidates first": {}}
    tokens: dict[str, int] = {}
    documents: dict[str, int] = {}
    is_partial = candidates is not None
    marks = [mark for mark in _MARKS if mark < len(asked.queries)]
    for number, query in enumerate(asked.queries, start=1):
        hits = _hits(index, query, _DEEPER if is_partial else DEPTH, Allowance(candidates or 0))
        run[query.doc_id] = [hit.doc_id for hit in hits[:DEPTH]]
        if is_partial:
            others["scaled"][query.doc_id] = [hit.doc_id for hit in scaled(hits)[:DEPTH]]
            others["candidates first"][query.doc_id] = [hit.doc_id for hit in candidates_first(hits)[:DEPTH]]
        if number in marks or number == len(asked.queries):
            tokens[str(number)], documents[str(number)] = _encoded(index)
    values = evaluate(asked.qrels, run, depth=DEPTH)
    return DemandRow(
        way=way,
        candidates=candidates,
        metrics=_rounded(asked.qrels, run),
        other_rules={rule: _rounded(asked.qrels, other) for rule, other in others.items() if other},
        per_query=[round(value, 4) for value in values["nDCG@10"].values()],
        tokens=tokens,
        documents=documents,
    )


def scaled(hits: Sequence[Hit]) -> list[Hit]:
    """Hits in the order of another rule: a document without vectors has its words counted as the whole score."""
    words = Scoring().weights(vectors=True)
    share = words["words"] + words["pairs"]
    return sorted(hits, key=lambda hit: (-hit.score / (1 if hit.has_vectors else share), hit.doc_id))


def candidates_first(hits: Sequence[Hit]) -> list[Hit]:
    """Hits in the order of another rule: documents with vectors before all others."""
    return sorted(hits, key=lambda hit: (not hit.has_vectors, -hit.score, hit.doc_id))


def _hits(index: Index, query: Document, k: int, allowance: Allowance) -> list[Hit]:
    try:
        is_indexed = index.document(query.doc_id).text == query.text
    except EngineError:
        is_indexed = False
    if is_indexed:
        found = index.search_id(query.doc_id, k=k, allowance=allowance)
    else:
        found = index.search(query, k=k + 1, allowance=allowance)
    return [hit for hit in found.hits if hit.doc_id != query.doc_id][:k]


def _encoded(index: Index) -> tuple[int, int]:
    """Tokens and documents with vectors."""
    snapshot = index.snapshot
    with_vectors = snapshot.has_vectors
    return int(snapshot.tokens[with_vectors].sum()), int(with_vectors.sum())


def _rounded(qrels: Qrels, run: dict[str, list[str]]) -> dict[str, float]:
    return {name: round(value, 4) for name, value in means(evaluate(qrels, run, depth=DEPTH)).items()}


@click.command()
@click.argument("name", metavar="DATASET")
@click.option("--encoder", default=BUNDLED_NAME, show_default=True, help="Of the index.")
@click.option("--split", default="test", show_default=True, help="Whose queries are asked.")
@click.option("--quick", is_flag=True, help="A small seeded part of DATASET; a record only where --out is given.")
@click.option("--seed", default=0, show_default=True, help="Of the order of queries, and of --quick.")
@data_option
@work_option
@click.option("--out", type=click.Path(path_type=Path), help="Folder for the record; with --quick none.")
@click.pass_context
def main(
    context: click.Context,
    name: str,
    encoder: str,
    split: str,
    quick: bool,
    seed: int,
    data: Path,
    work: Path,
    out: Path | None,
) -> None:
    """Measure encoding on demand on DATASET; vectors are looked up in an index that has all.

    \b
    Example:
        python -m benchmarks.on_demand proposals
    """
    origin = describe_origin(command_line("benchmarks.on_demand", context, leave_out=("data", "work", "out")), seed)
    folder = out or (None if quick else RESULTS)
    started = time.perf_counter()
    try:
        dataset = open_dataset(name, data)
        dataset = quick_part(dataset, split, work / "quick", seed=seed) if quick else dataset
        qrels = dict(read_qrels(dataset, split))
        queries = list(read_queries(dataset, qrels).values())
        random.Random(seed).shuffle(queries)
        asked = Asked(queries, {query.doc_id: qrels[query.doc_id] for query in queries})
        documents = list(read_documents(dataset))
        with prepared_index(dataset, encoder, work, tell=tell) as ready:
            full = ready.index
            rows = []
            with later_index(full, documents, "none") as words:
                rows.append(measure(words, asked, "words", None))
            for candidates in CANDIDATES:
                tell(f"{dataset.name}: {candidates} candidates")
                with later_index(full, documents, "later") as later:
                    sample = _encoded(later)
                    rows.append(measure(later, asked, f"{candidates} candidates", candidates))
            rows.append(measure(full, asked, "all", None))
            record = DemandRecord(
                task=dataset.name,
                dataset=f"{dataset.name}@{checksum(dataset)}",
                encoder=ready.encoder,
                split=split,
                n_queries=len(queries),
                n_documents=full.n_documents,
                n_tokens=int(full.snapshot.tokens.sum()),
                sample_documents=sample[1],
                sample_tokens=sample[0],
                rows=rows,
                seconds=round(time.perf_counter() - started, 1),
                origin=origin,
            )
    except EngineError as error:
        raise click.ClickException(str(error)) from error
    if folder is not None:
        write_record(record, folder)
    click.echo(demand_table([record]))


if __name__ == "__main__":
    main()
