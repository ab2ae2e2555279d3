"""Measures how well scorers tell pairs of documents that match from others; writes a record for each scorer."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from benchmarks.options import data_option, out_option, work_option
from benchmarks.pairs.building import PROTOCOLS
from benchmarks.pairs.judging import accuracy_threshold, f1_threshold, judge
from benchmarks.pairs.measuring import measure_each, refuse_failed
from benchmarks.pairs.options import (
    QUICK_PAIRS,
    budget_of,
    documents_to_fit,
    fitting_options,
    read_scorer_options,
    scorers_option,
)
from benchmarks.pairs.preparing import Asked, prepared_pairs
from benchmarks.pairs.record import MatchingRecord
from benchmarks.pairs.scorer import Budget, Fit, PairScorer
from benchmarks.pairs.scorers import SCORERS
from benchmarks.pairs.scoring import finite_scores
from benchmarks.pairs.splitting import PairSplits, Split, SplitRule, documents_of, pairs_checksum
from benchmarks.pairs.tables import AGAINST, matching_table
from benchmarks.program import origin_of, program
from benchmarks.record_file import RESULTS
from benchmarks.systems import Settings
from engine.document import Document
from indexer.training.origin import Origin

GIVEN_PAIRS = "given"  # the protocol of pairs that are read


@dataclass(frozen=True)
class Trial:
    """What every scorer gets alike."""

    task: str
    dataset: str  # name@checksum
    protocol: str
    rule: SplitRule
    documents: Mapping[str, Document]  # that the pairs name
    splits: PairSplits
    n_lost: Mapping[Split, int]
    budget: Budget
    is_quick: bool
    origin: Origin


def measure(scorer: PairScorer, trial: Trial, chosen: Settings | None = None) -> MatchingRecord:
    """Fit a scorer on train, choose thresholds on valid, and judge it on test.

    Args:
        scorer: not fitted yet.
        trial: see there.
        chosen: those of its settings that are not its defaults, for the record.

    Raises:
        DatasetError: a score is no finite number.
    """
    train, valid, test = (trial.splits[split] for split in (Split.TRAIN, Split.VALID, Split.TEST))
    started = time.perf_counter()
    scorer.fit(Fit(trial.documents, train, valid, trial.budget, trial.origin.seed))
    fitted = time.perf_counter()
    valid_scores, scores = (finite_scores(scorer, pairs) for pairs in (valid, test))
    done = time.perf_counter()
    valid_labels, labels = ([pair.is_match for pair in pairs] for pairs in (valid, test))
    return MatchingRecord(
        task=trial.task,
        dataset=trial.dataset,
        protocol=trial.protocol,
        split_rule=trial.rule,
        pairs=pairs_checksum(trial.splits),
        n_pairs={split.value: len(pairs) for split, pairs in trial.splits.items()},
        n_documents={split.value: len(documents_of(pairs)) for split, pairs in trial.splits.items()},
        n_lost={split.value: n for split, n in trial.n_lost.items()},
        is_quick=trial.is_quick,
        scorer=scorer.name,
        encoder=scorer.encoder,
        settings=dict(scorer.settings),
        chosen=chosen or {},
        budget=trial.budget if scorer.is_trained else None,
        course=scorer.course,
        fit_seconds=round(fitted - started, 2),
        score_seconds=round(done - fitted, 2),
        at_accuracy=judge(scores, labels, accuracy_threshold(valid_scores, valid_labels)),
        at_f1=judge(scores, labels, f1_threshold(valid_scores, valid_labels)),
        scores=scores.tolist(),
        labels=[int(label) for label in labels],
        groups=_numbered([pair.first for pair in test]),
        origin=trial.origin,
    )


def _numbered(doc_ids: Sequence[str]) -> list[int]:
    """For each its number among those that differ, from 0, in the order in which they first come."""
    number = {doc_id: at for at, doc_id in enumerate(dict.fromkeys(doc_ids))}
    return [number[doc_id] for doc_id in doc_ids]


@program
@click.argument("name", metavar="TASK")
@scorers_option("tfidf,bm25,cosine,maxsim", SCORERS)
@click.option("--protocol", type=click.Choice(list(PROTOCOLS)), default="aan", show_default=True, help="Of drawing.")
@click.option(
    "--split",
    "rule",
    type=click.Choice([rule.value for rule in SplitRule]),
    default=SplitRule.DOCUMENT.value,
    show_default=True,
    help="Share no document between splits; or split over pairs, as published; or as the file of pairs says.",
)
@click.option(
    "--pairs",
    "pair_file",
    type=click.Path(path_type=Path, exists=True),
    help="A file of your own: id1, id2, label; or a folder of AAN pairs or of GWikiMatch, as they are given out.",
)
@click.option("--most-pairs", type=click.IntRange(1), help="Matching pairs of a split, and as many others.")
@click.option("--pairs-seed", default=0, show_default=True, help="Of drawing and splitting pairs.")
@fitting_options
@click.option(
    "--against",
    default=AGAINST,
    show_default=True,
    type=click.Choice(SCORERS),
    metavar="SCORER",
    help="That others are tested against.",
)
@click.option("--seed", default=0, show_default=True, help="Of training, and of the tests in the table.")
@click.option("--quick", is_flag=True, help="Few pairs, short documents, few steps; no record without --out.")
@data_option
@work_option
@out_option
@click.pass_context
def main(
    context: click.Context,
    /,
    name: str,
    scorers: tuple[str, ...],
    protocol: str,
    rule: str,
    pair_file: Path | None,
    most_pairs: int | None,
    pairs_seed: int,
    against: str,
    seed: int,
    quick: bool,
    data: Path,
    work: Path,
    out: Path | None,
    **given: Any,  # noqa: ANN401
) -> None:
    """Measure how well scorers tell matching pairs of TASK from others, and write a record for each.

    TASK is a task by name or a folder of the same layout; with a file of your own pairs any file of documents, with
    GWikiMatch the file of its articles, with AAN pairs a name, for they hold their texts.

    \b
    Example:
        python -m benchmarks study matching proposals --scorers tfidf,bm25,smith-np,colde --steps 500
        python -m benchmarks study matching aan_lra --pairs lra_release/tsv_data --split given --scorers bm25,han
    """
    if rule == SplitRule.GIVEN and pair_file is None:
        raise click.UsageError("--split given goes with --pairs; take --split document or --split pair")
    folder = out or (None if quick else RESULTS)
    asked = Asked(protocol, SplitRule(rule), pair_file, pairs_seed, QUICK_PAIRS if quick else most_pairs)
    prepared = prepared_pairs(name, data, asked)
    trial = Trial(
        task=prepared.task,
        dataset=prepared.dataset,
        protocol=protocol if pair_file is None else GIVEN_PAIRS,
        rule=asked.rule,
        documents=documents_to_fit(prepared, quick=quick),
        splits=prepared.splits,
        n_lost=prepared.n_lost,
        budget=budget_of(given, quick=quick),
        is_quick=quick,
        origin=origin_of(context, seed),
    )
    options = read_scorer_options(given, prepared, work, quick=quick)
    records, failed = measure_each(
        scorers,
        options,
        lambda scorer, chosen: measure(scorer, trial, chosen),
        told=f"{trial.task}: {len(trial.splits[Split.TEST]):,} test pairs",
        folder=folder,
    )
    click.echo(matching_table(records, against))
    refuse_failed(failed, len(scorers))
