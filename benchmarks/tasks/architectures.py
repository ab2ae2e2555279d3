"""Measures the encoders and scorers of the papers in retrieval by long documents, on parts of equal size."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import click
import torch

from benchmarks.baselines.text_baselines import TEXT_BASELINES
from benchmarks.datasets import Dataset, DatasetError, checksum, read_documents
from benchmarks.measurement import Measurement, measurement
from benchmarks.pairs.scoring import Pair, PairScorer, finite_scores
from benchmarks.program import log, names_of, task
from benchmarks.quick import sized_part
from benchmarks.runs import Run, ranked_case
from benchmarks.systems import Ranking
from benchmarks.tables.encoders import (
    DEPTH,
    DOCUMENT,
    EVIDENCE,
    WORDS,
    ArchitectureDetails,
    EncoderFacts,
    architectures_table,
    ranking_of,
    reranked,
)
from benchmarks.tasks.retrieval import Trial, measure, open_trial, prepared_systems, rank
from engine.encoders.files import MINILM_NAME
from engine.encoders.loading import load_trainable
from engine.text.document import Document
from engine.training.card import CARD_FILE

SYSTEMS = (DOCUMENT, EVIDENCE, WORDS, "bm25", *TEXT_BASELINES)
N_DOCUMENTS, N_WORDS = 240, 1000  # of a part
_K = 100
_FACT = re.compile(r"^\| (begins with|steps|tokens read) \| (.+?) \|$", re.MULTILINE)


def encoder_facts(name: str) -> EncoderFacts:
    """The facts of an encoder, from its parameters and from its model card."""
    encoder = load_trainable(name, device="cpu", dtype=torch.float32)
    n_parameters = sum(weight.numel() for weight in encoder.module.parameters())
    card = Path(name) / CARD_FILE
    found = dict(_FACT.findall(card.read_text("utf-8"))) if card.is_file() else {}
    steps, n_tokens = (int(found.get(key, "0").replace(",", "")) for key in ("steps", "tokens read"))
    return EncoderFacts(n_parameters, found.get("begins with", ""), steps, n_tokens)


@task
@click.argument("name", metavar="DATASET")
@click.option("--encoder", "encoders", multiple=True, default=(MINILM_NAME,), help="Encoder; may be repeated.")
@click.option(
    "--systems", default=f"{DOCUMENT},{EVIDENCE}", callback=names_of(SYSTEMS), help="Systems, separated by commas."
)
@click.option("--documents", "n_documents", type=click.IntRange(20), default=N_DOCUMENTS, help="Documents of the part.")
@click.option("--words", "n_words", type=click.IntRange(1), default=N_WORDS, help="First words read of each document.")
@click.option("--split", default="test", help="Split to search with.")
@measurement(seed="Seed of the part, and of tests and intervals.", quick="Few short documents", encodes=True)
def main(
    call: Measurement,
    name: str,
    encoders: tuple[str, ...],
    systems: tuple[str, ...],
    n_documents: int,
    n_words: int,
    split: str,
) -> None:
    """Rank a part of DATASET by document vectors and by the full score of encoders, a run for each.

    The part has a sixth as many queries as documents. An encoder is a folder, a name on a hub, or the bundled one.

    \b
    Example:
        python -m benchmarks run pairs clscisumm --systems smith-wp-sp,colde --steps 40 --save encoders
        python -m benchmarks run architectures rfc --encoder encoders/smith-wp-sp --encoder encoders/colde
        python -m benchmarks run architectures rfc --systems words,bm25,tfidf,doc2vec
    """
    dataset = call.dataset(name, split)
    if not call.is_quick:
        dataset = _part(dataset, split, call.work, n_documents, n_words, seed=call.seed)
    trial = open_trial(dataset, split, _K, None, call.origin)
    runs = list[Run]()
    without = [system for system in systems if system not in (DOCUMENT, EVIDENCE)]
    with_encoder = [system for system in systems if system in (DOCUMENT, EVIDENCE)]
    asked = [
        *((with_encoder, encoder) for encoder in encoders if with_encoder),
        *[(without, MINILM_NAME)] * bool(without),
    ]
    for chosen, encoder in asked:
        facts = encoder_facts(encoder) if chosen is with_encoder else None
        details = ArchitectureDetails(n_documents, n_words, facts)
        ready = prepared_systems(chosen, dataset, encoder, call.work, exact=True, seed=call.seed)
        for system, cost in ready:
            log(f"{dataset.name}: {system.name} {Path(encoder).name}")
            run, _ = measure(system, cost, trial)
            runs.append(replace(run, task="architectures", variant="", details=asdict(details)))
            call.keep(runs[-1])
    click.echo(architectures_table(runs))


def _part(dataset: Dataset, split: str, work: Path, n_documents: int, n_words: int, *, seed: int = 0) -> Dataset:
    n_queries = n_documents // 6
    return sized_part(dataset, split, work, n_documents, seed=seed, n_words=n_words, n_queries=n_queries)


@dataclass(frozen=True)
class RankedPart:
    """A part of a corpus for scorers of pairs, and what words find in it."""

    trial: Trial
    documents: Mapping[str, Document]  # by name of the part and id, so that no document of another corpus has its name
    first: Mapping[str, Ranking]  # of the system words, by query


def ranked_part(name: str, call: Measurement, seen: Mapping[str, set[str]]) -> RankedPart:
    """The part of a dataset that this task measures, with the queries of test."""
    dataset = call.dataset(name, "test")
    learned = seen.get(dataset.name, set())
    part = dataset if call.is_quick else _part(dataset, "test", call.work, N_DOCUMENTS, N_WORDS)
    trial = open_trial(part, "test", _K, None, call.origin)
    if known := sorted(trial.queries.keys() & learned):
        raise DatasetError(
            f"scorers learn from the query {known[0]!r} of {name}; draw other pairs, or rank another part"
        )
    documents = {_named(part, one.doc_id): one for one in read_documents(part)}
    documents |= {_named(part, query_id): query for query_id, query in trial.queries.items()}
    ready = prepared_systems([WORDS], part, MINILM_NAME, call.work, exact=True)
    ((first, _),) = [rank(system, trial.queries.values(), _K) for system, _ in ready]
    return RankedPart(trial, documents, first)


def ranking_runs(scorer: PairScorer, part: RankedPart, *, ranks_all: bool) -> list[Run]:
    """Rank a part by a fitted scorer of pairs, and put the first targets of words into its order.

    Returns:
        The run of all documents if there is one, then that of the first targets.
    """
    dataset, corpus = part.trial.dataset, sorted(part.documents)
    asked = {
        _named(dataset, query): [name for name in corpus if name != _named(dataset, query)]
        if ranks_all
        else [_named(dataset, target) for target, _ in ranking[:DEPTH]]
        for query, ranking in part.first.items()
    }
    found = scored(scorer, asked)
    order = {
        query: [(name.removeprefix(_named(dataset, "")), score) for name, score in found[_named(dataset, query)]]
        for query in part.first
    }
    again = _ranking_run(scorer, part, reranked(part.first, order, DEPTH), depth=DEPTH)
    return [_ranking_run(scorer, part, order), again] if ranks_all else [again]


def _named(dataset: Dataset, doc_id: str) -> str:
    return f"{dataset.name}/{doc_id}"


def _ranking_run(scorer: PairScorer, part: RankedPart, rankings: Mapping[str, Ranking], *, depth: int = 0) -> Run:
    trial, course = part.trial, scorer.course
    n_steps, n_tokens = (course.pretraining_steps + course.n_steps, course.n_tokens) if course else (0, 0)
    facts = EncoderFacts(int(scorer.settings.get("n_parameters", 0)), scorer.encoder, n_steps, n_tokens)
    return Run(
        task="architectures",
        dataset=f"{trial.dataset.name}@{checksum(trial.dataset)}",
        system=scorer.name,
        encoder=scorer.encoder,
        settings=dict(scorer.settings),
        variant=f"first{depth}" if depth else "",
        k=trial.k,
        details=asdict(ArchitectureDetails(N_DOCUMENTS, N_WORDS, facts, depth)),
        origin=trial.origin,
        cases=[ranked_case(query, rankings[query], targets) for query, targets in trial.qrels.items()],
    )


def scored(scorer: PairScorer, wanted: Mapping[str, Collection[str]]) -> dict[str, Ranking]:
    """Rank targets by a fitted scorer, for each query; equal scores keep the order of the targets."""
    # Scorers do not read is_match of a pair.
    pairs = [Pair(query, target, is_match=False) for query, targets in wanted.items() for target in targets]
    of_pair = dict(zip(((one.first, one.second) for one in pairs), finite_scores(scorer, pairs).tolist(), strict=True))
    return {
        query: ranking_of({target: of_pair[query, target] for target in targets}) for query, targets in wanted.items()
    }
