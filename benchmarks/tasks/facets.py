"""Measures whether the section of the queried facet carries the match; writes a run for each part of the score."""

from __future__ import annotations

import hashlib
import tempfile
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

import click
import numpy as np

from benchmarks.datasets import DatasetError
from benchmarks.packages import require
from benchmarks.prepare import index_documents, label_of
from benchmarks.program import Measurement, log, measurement, task
from benchmarks.runs import Case, Run
from benchmarks.sections.faceted import (
    FacetTask,
    Ranking,
    average_precision,
    candidate_scores,
    largest_pair_shares,
    model_explanations,
    open_facets,
    pool_ndcg,
    read_labelled,
    tied_ndcg,
)
from benchmarks.tables.sections import FacetsDetails, facets_table
from engine.encoders.files import BUNDLED_NAME
from engine.encoders.loading import load_encoder
from engine.index import Index
from engine.scoring.evidence import Scoring
from engine.search.request import Request

METRICS: Mapping[str, Callable[[Mapping[str, int], Mapping[str, float]], float]] = {  # of relevance and scores
    "nDCG@10": partial(tied_ndcg, k=10),
    "nDCG@20": partial(tied_ndcg, k=20),
    "nDCG%20": pool_ndcg,
    "MAP": average_precision,
}


def measure(index: Index, tasks: Sequence[FacetTask], encoder: str, call: Measurement) -> list[Run]:
    """Search with every query of every facet once, and judge all rankings of its candidates, and of these alone.

    The index has all queries and candidates, from `read_labelled`; there is a task for each facet.

    Returns:
        A run for each ranking; that of the model only if the encoder itself explains matches. The runs of evidence and
        model also have the shares of the largest pairs.
    """
    cases: dict[Ranking, list[Case]] = defaultdict(list)
    zeros: dict[Ranking, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for one in tasks:
        for query, relevance in one.qrels.items():
            result = index.search(query, Request(k=index.n_documents, exact=True))
            models = model_explanations(index, result, relevance.keys())
            largest = {Ranking.EVIDENCE: largest_pair_shares(index, result, one.facet, relevance)}
            if models:
                largest[Ranking.MODEL] = largest_pair_shares(index, result, one.facet, relevance, models)
            for ranking, scores in candidate_scores(index, result, one.facet, relevance.keys(), models).items():
                shares = largest.get(ranking, {}).items()
                zeros[ranking][one.facet].append(float(np.mean([score == 0 for score in scores.values()])))
                cases[ranking].append(
                    Case(
                        id=f"{one.facet} {query}",
                        values={name: round(measured(relevance, scores), 4) for name, measured in METRICS.items()},
                        facts={
                            "fold": float(one.folds[query]),
                            **{kind: round(share, 4) for kind, share in shares if share is not None},
                        },
                        labels={"facet": one.facet},
                        group=query,
                    )
                )
    datasets = {one.facet: one.dataset for one in tasks}
    checksum = hashlib.sha256("\n".join(sorted(datasets.values())).encode()).hexdigest()[:12]
    corpus = tasks[0].dataset.partition("@")[0]
    runs = []
    for ranking in [ranking for ranking in Ranking if ranking in cases]:
        zero_shares = {facet: round(float(np.mean(shares)), 4) for facet, shares in zeros[ranking].items()}
        runs.append(
            Run(
                task="facets",
                dataset=f"{corpus}@{checksum}",
                system=ranking.value,
                encoder=encoder,
                settings=asdict(Scoring()),
                details=asdict(FacetsDetails(datasets, index.n_documents, zero_shares)),
                origin=call.origin,
                cases=cases[ranking],
            )
        )
    return runs


def run(folder: Path, encoder_name: str, call: Measurement) -> list[Run]:
    """Index the faceted corpus in a temporary folder, and measure."""
    require("nDCG over ties", {"sklearn": "scikit-learn"}, "benchmarks")
    tasks = open_facets(folder)
    wanted = {name for task in tasks for query, judged in task.qrels.items() for name in (query, *judged)}
    documents = list(read_labelled(tasks[0].corpus))
    if absent := wanted - {document.doc_id for document in documents}:
        raise DatasetError(
            f"{min(absent)!r} is judged but not in {tasks[0].corpus}, like {len(absent)} of {len(wanted)} queries and "
            "candidates; fetch corpus and judgments of one version"
        )
    encoder = load_encoder(encoder_name)
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "facets.lm"
        index_documents(path, documents, encoder, log)
        with Index.open(path, encoder=encoder) as index:
            return measure(index, tasks, label_of(encoder.name, encoder.fingerprint), call)


@task
@click.argument("folder", default="csfcube")
@click.option("--encoder", default=BUNDLED_NAME, help="Name or folder of an encoder.")
@measurement(seed="Seed of the tests and the intervals.", data=True)
def main(call: Measurement, folder: str, encoder: str) -> None:
    """Measure, on the faceted corpus in FOLDER, which part of a score ranks the candidates of a facet best.

    FOLDER is a path, or the name of a folder in --data. The corpus is indexed in a temporary folder.

    \b
    Example:
        python -m benchmarks run facets csfcube --encoder all-MiniLM-L6-v2
    """
    place = Path(folder) if Path(folder).is_dir() else call.data / folder
    call.publish(run(place, encoder, call), facets_table)
