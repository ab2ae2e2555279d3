"""Measures a task of MTEB by mteb's own evaluator, beside rows of its public board.

A system of longmatch has the interface of a search model of mteb. bm25s is mteb's own: its row must come out again.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from benchmarks.datasets import Dataset, checksum, read_documents, read_qrels, read_queries
from benchmarks.packages import require
from benchmarks.prepare import prepared_index, prepared_words
from benchmarks.program import Measurement, log, measurement, names_of, task
from benchmarks.runs import Case, Run
from benchmarks.systems import Evidence, System
from benchmarks.tables.pivot import case_tables
from engine.encoders.files import BUNDLED_NAME
from engine.text.document import Document

SYSTEMS = ("words", "evidence", "bm25s")
SPLIT, SUBSET = "test", "default"
MEASURES = {"nDCG@10": "ndcg_at_10", "Recall@10": "recall_at_10", "Recall@100": "recall_at_100", "MRR@10": "mrr_at_10"}


@dataclass(frozen=True)
class Board:
    """A task of the board, and some of its rows."""

    task: str  # as mteb names it
    rows: Mapping[str, float]  # nDCG@10 by model
    source: str  # of the rows


BOARDS = {
    "aila_casedocs": Board(
        "AILACasedocs",
        {
            "board: best of 217 rows (8B parameters)": 0.656,
            "board: best of at most 160M parameters": 0.366,
            "board: bm25s": 0.278,
            "board: all-MiniLM-L6-v2": 0.197,
        },
        "results repository of MTEB, 20 August 2026",
    )
}


class SearchModel:
    """A system of longmatch as a search model of mteb, which evaluates its rankings."""

    def __init__(self, system: System, queries: Mapping[str, Document]) -> None:
        self._system = system
        self._queries = queries

    @property
    def mteb_model_meta(self) -> object:
        """Name and revision, as mteb writes them into its results."""
        model_meta = importlib.import_module("mteb.models.model_meta").ModelMeta
        meta: object = model_meta.create_empty({"name": f"longmatch/{self._system.name}", "revision": "1"})
        return meta

    def index(self, corpus: object, **_options: object) -> None:
        """The system has indexed the corpus before."""

    def search(self, queries: Iterable[Mapping[str, str]], *, top_k: int, **_options: object) -> dict[str, Any]:
        """The scores of at most `top_k` documents for each query."""
        ids = [query["id"] for query in queries]
        return {query_id: dict(self._system.search(self._queries[query_id], top_k)) for query_id in ids}


def local_task(board: Board, dataset: Dataset) -> Any:  # noqa: ANN401 - mteb is imported here
    """The task of mteb over a folder of this project: nothing is downloaded."""
    mteb, tables = importlib.import_module("mteb"), importlib.import_module("datasets").Dataset
    qrels = read_qrels(dataset, SPLIT)
    task = mteb.get_task(board.task)

    def table(documents: Iterable[Document]) -> object:
        return tables.from_list([{"id": one.doc_id, "title": "", "text": one.text} for one in documents])

    task.dataset = {
        SUBSET: {
            SPLIT: {
                "corpus": table(read_documents(dataset)),
                "queries": table(read_queries(dataset, qrels).values()),
                "relevant_docs": {query: dict(targets) for query, targets in qrels.items()},
                "top_ranked": None,
            }
        }
    }
    task.data_loaded = True
    return task


def evaluated(model: object, board: Board, dataset: Dataset) -> dict[str, float]:
    """The measures of a model, by mteb's evaluator."""
    mteb = importlib.import_module("mteb")
    result = mteb.evaluate(model, local_task(board, dataset), cache=None, show_progress_bar=False)
    (scores,) = result.task_results[0].scores[SPLIT]
    return {name: round(float(scores[key]), 4) for name, key in MEASURES.items()}


@task
@click.argument("name", metavar="BOARD", type=click.Choice(list(BOARDS)))
@click.option("--systems", default="words,bm25s", callback=names_of(SYSTEMS), help="Systems, separated by commas.")
@click.option("--encoder", "encoders", multiple=True, default=(BUNDLED_NAME,), help="Of evidence; may be repeated.")
@measurement(encodes=True)
def main(call: Measurement, name: str, systems: Sequence[str], encoders: Sequence[str]) -> None:
    """Evaluate systems on a task of MTEB by its own evaluator, and show rows of its board beside them.

    \b
    Example:
        python -m benchmarks fetch aila_casedocs --to data
        python -m benchmarks run board aila_casedocs --data data --systems words,evidence,bm25s
    """
    require("the board", {"mteb": "mteb", "datasets": "datasets"}, "mteb")
    dataset, board = call.dataset(name, SPLIT), BOARDS[name]
    queries = read_queries(dataset, read_qrels(dataset, SPLIT))
    cases = []
    asked = [(system, encoder) for system in systems for encoder in (encoders if system == "evidence" else ("",))]
    for system, encoder in asked:
        log(f"{name}: {system} {encoder}")
        if system == "bm25s":
            model = importlib.import_module("mteb").get_model("mteb/baseline-bm25s")
            cases.append(Case(id="bm25s, by mteb", values=evaluated(model, board, dataset)))
            continue
        index = prepared_index(dataset, encoder, call.work, log) if encoder else prepared_words(dataset, call.work, log)
        with index as ready:
            model = SearchModel(Evidence(ready.index, ready.encoder, name=system, exact=True), queries)
            label = ", ".join(filter(None, ("longmatch", system, ready.encoder.partition("@")[0])))
            cases.append(Case(id=label, values=evaluated(model, board, dataset)))
    cases += [Case(id=row, values={"nDCG@10": value}) for row, value in board.rows.items()]
    run = Run(
        task="board",
        dataset=f"{dataset.name}@{checksum(dataset)}",
        system=board.task,
        details={
            "note": f"{len(queries)} queries, binary gain, by mteb's evaluator. Rows of the board: {board.source}."
        },
        origin=call.origin,
        cases=sorted(cases, key=lambda case: -case.values["nDCG@10"]),
    )
    call.publish([run], case_tables)
