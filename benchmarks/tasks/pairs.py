"""Measures how well scorers distinguish matching pairs of documents from others; writes a run for each scorer."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from benchmarks.pairs.building import PROTOCOL, RULE, PairSplits, Split, pairs_checksum, prepared_pairs
from benchmarks.pairs.scorers import (
    ScorerOptions,
    fitting_options,
    make_scorer,
    options_of,
    settings_not_default,
    systems_option,
)
from benchmarks.pairs.scoring import (
    Budget,
    Fit,
    Learned,
    PairScorer,
    accuracy_threshold,
    documents_of,
    f1_threshold,
    finite_scores,
)
from benchmarks.program import Measurement, log, measurement, task
from benchmarks.quick import first_words
from benchmarks.runs import Case, Run
from benchmarks.systems import Settings
from benchmarks.tables.pairs import PairsDetails, pairs_table
from engine.errors import EngineError
from engine.machine import Origin
from engine.text.document import Document


@dataclass(frozen=True)
class Trial:
    """The data and budget that are equal for every scorer."""

    dataset: str  # name@checksum
    documents: Mapping[str, Document]  # documents of the pairs
    splits: PairSplits
    n_lost: Mapping[Split, int]
    budget: Budget
    origin: Origin


def _chosen_digest(chosen: Settings, budget: Budget | None) -> str:
    """First 6 hex digits of a digest of the chosen settings and budget; "" if all have their defaults."""
    spent = {} if budget in (None, Budget()) else asdict(budget or Budget())
    if not chosen and not spent:
        return ""
    return hashlib.sha256(json.dumps([chosen, spent], sort_keys=True).encode()).hexdigest()[:6]


def measure(scorer: PairScorer, trial: Trial, chosen: Settings | None = None) -> tuple[Run, Learned]:
    """Fit a scorer on train, choose thresholds on valid, score the pairs of test; `chosen` are settings of its own."""
    train, valid, test = (trial.splits[split] for split in (Split.TRAIN, Split.VALID, Split.TEST))
    started = time.perf_counter()
    learned = scorer.learn(Fit(trial.documents, train, valid, trial.budget, trial.origin.seed))
    fitted = time.perf_counter()
    valid_scores, scores = (finite_scores(scorer.name, learned, pairs) for pairs in (valid, test))
    done = time.perf_counter()
    labels = [pair.is_match for pair in valid]
    checksum = pairs_checksum(trial.splits)
    budget = trial.budget if scorer.is_trained else None
    details = PairsDetails(
        protocol=PROTOCOL,
        split_rule=RULE,
        pairs=checksum,
        n_pairs={split.value: len(pairs) for split, pairs in trial.splits.items()},
        n_documents={split.value: len(documents_of(pairs)) for split, pairs in trial.splits.items()},
        n_lost={split.value: n for split, n in trial.n_lost.items()},
        chosen=chosen or {},
        budget=budget,
        course=learned.course,
        accuracy_threshold=accuracy_threshold(valid_scores, labels),
        f1_threshold=f1_threshold(valid_scores, labels),
    )
    run = Run(
        task="pairs",
        dataset=trial.dataset,
        system=scorer.name,
        encoder=learned.encoder,
        settings=scorer.settings | learned.settings,
        variant="-".join(filter(None, (PROTOCOL, RULE, checksum[:6], _chosen_digest(details.chosen, budget)))),
        fit_seconds=round(fitted - started, 2),
        seconds=round(done - fitted, 2),
        details=asdict(details),
        origin=trial.origin,
        cases=[
            Case(
                id=f"{pair.first} {pair.second}",
                values={"score": score, "match": float(pair.is_match)},
                group=pair.first,
            )
            for pair, score in zip(test, scores.tolist(), strict=True)
        ],
    )
    return run, learned


@task
@click.argument("name", metavar="DATASET")
@systems_option("tfidf,bm25,cosine,maxsim")
@click.option(
    "--most-pairs", type=click.IntRange(1), help="Limit of matching pairs in a split, with as many mismatches."
)
@fitting_options
@click.option("--words", type=click.IntRange(1), help="Read at most the first N words of each document.")
@click.option(
    "--save", type=click.Path(path_type=Path, file_okay=False), help="Folder for trained encoders, by their names."
)
@measurement(seed="Seed of training, and of the tests in the table.", encodes=True)
def main(
    call: Measurement,
    name: str,
    systems: tuple[str, ...],
    most_pairs: int | None,
    **given: Any,  # noqa: ANN401
) -> None:
    """Distinguish matching pairs of documents from others, a run for each scorer.

    DATASET is a task by name or a folder of the same layout.

    \b
    Example:
        python -m benchmarks run pairs proposals --systems tfidf,bm25,smith-np,colde --steps 500
    """
    prepared = prepared_pairs(name, call.data, most=most_pairs)
    corpus, _, checksum = prepared.dataset.partition("@")
    n_words = given["words"]
    suffix = f"_{n_words}words" if n_words else ""
    documents = prepared.documents
    if n_words:
        documents = {doc_id: first_words(document, n_words) for doc_id, document in documents.items()}
    trial = Trial(
        dataset=f"{corpus}{suffix}@{checksum}",
        documents=documents,
        splits=prepared.splits,
        n_lost=prepared.n_lost,
        budget=Budget(given["steps"], given["pairs_per_step"]),
        origin=call.origin,
    )
    label = prepared.dataset + (f"-first{n_words}" if n_words else "")
    options = options_of(given, label, call.work)
    runs, failed = list[Run](), list[str]()
    for system in systems:
        log(f"{corpus}: {len(trial.splits[Split.TEST]):,} test pairs to {system}")
        try:
            runs.append(_measured(system, options, trial, call, given["save"]))
        except EngineError as error:
            failed.append(f"{system}: {error}")
    click.echo(pairs_table(runs))
    if failed:
        raise click.ClickException(f"{len(failed)} of {len(systems)} scorers failed; {'; '.join(failed)}")


def _measured(system: str, options: ScorerOptions, trial: Trial, call: Measurement, save: Path | None) -> Run:
    """Measure a scorer, and save its encoder."""
    scorer = make_scorer(system, options)
    run, learned = measure(scorer, trial, settings_not_default(scorer, options))
    call.keep(run)
    if save is not None and learned.save is not None:
        folder = save / "-".join([scorer.name, *options.sizes.values()])
        folder.mkdir(parents=True, exist_ok=True)
        learned.save(folder)
    elif save is not None:
        log(f"{scorer.name} scores pairs and has no vector of a document; it is not saved")
    return run
