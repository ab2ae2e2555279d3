"""Measures how well scorers tell pairs of documents that match from others; writes a record for each scorer."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

from benchmarks.cut import first_words
from benchmarks.datasets import DatasetError
from benchmarks.options import data_option, names_of, out_option, tell, work_option
from benchmarks.origin import command_line
from benchmarks.pairs.building import PROTOCOLS
from benchmarks.pairs.judging import accuracy_threshold, f1_threshold, judge
from benchmarks.pairs.preparing import Asked, prepared_pairs
from benchmarks.pairs.record import MatchingRecord
from benchmarks.pairs.scorer import Budget, Pair, PairScorer
from benchmarks.pairs.scorers import SCORERS, TRAINING_TOKENS, ScorerOptions, make_scorer
from benchmarks.pairs.splitting import PairSplits, Split, SplitRule, documents_of, pairs_checksum
from benchmarks.pairs.tables import AGAINST, matching_table
from benchmarks.record_file import write_fields
from benchmarks.records import RESULTS
from benchmarks.systems import Settings
from engine.document import Document
from engine.encoders.weights import MINILM_NAME
from engine.errors import EngineError
from engine.origin import Origin, describe_origin

QUICK_PAIRS = 12  # matching ones of a split
QUICK_WORDS = 300
QUICK_BUDGET = Budget(steps=4, pairs_per_step=8, seconds=20)
QUICK_TOKENS = 256
GIVEN_PAIRS = "given"  # the protocol of pairs that are read
_BUDGET = Budget()


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
    scorer.fit(trial.documents, train, valid, budget=trial.budget, seed=trial.origin.seed)
    fitted = time.perf_counter()
    valid_scores, scores = (_finite(scorer, pairs) for pairs in (valid, test))
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


def _finite(scorer: PairScorer, pairs: Sequence[Pair]) -> NDArray[np.float64]:
    """Scores to nine digits, so that what a record holds is what was judged."""
    scores = scorer.score(pairs)
    if not np.all(np.isfinite(scores)):
        at = int(np.flatnonzero(~np.isfinite(scores))[0])
        raise DatasetError(
            f"{scorer.name} gives {pairs[at].first} and {pairs[at].second} the score {scores[at]}, no finite number; "
            "leave this scorer out, or spend less on its training"
        )
    return np.array([float(f"{score:.9g}") for score in scores])


def _chosen(context: click.Context, parameter: click.Parameter, names: str) -> tuple[str, ...]:
    return SCORERS if names == "all" else names_of(SCORERS)(context, parameter, names)


@click.command()
@click.argument("name", metavar="TASK")
@click.option("--scorers", default="tfidf,bm25,cosine,maxsim", show_default=True, callback=_chosen, help="Or: all.")
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
@click.option("--steps", default=_BUDGET.steps, show_default=True, type=click.IntRange(1), help="Budget: updates.")
@click.option(
    "--pairs-per-step",
    default=_BUDGET.pairs_per_step,
    show_default=True,
    type=click.IntRange(8),
    help="Budget: of an update.",
)
@click.option(
    "--seconds", default=_BUDGET.seconds, show_default=True, type=click.FloatRange(1), help="Budget: of a scorer."
)
@click.option("--encoder", default=MINILM_NAME, show_default=True, help="Compared, trained, or a backbone.")
@click.option("--training-tokens", default=TRAINING_TOKENS, show_default=True, type=click.IntRange(16))
@click.option(
    "--word-vectors",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Text file; else they are learned.",
)
@click.option("--longformer", default="", help="Weights of s-longformer; else random.")
@click.option("--bigbird", default="", help="Weights of s-bigbird; else random.")
@click.option("--small", is_flag=True, help="Neural baselines with narrow layers, for a first look.")
@click.option("--device", help="Of whatever has weights; a GPU where there is one by default.")
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
    name: str,
    scorers: tuple[str, ...],
    protocol: str,
    rule: str,
    pair_file: Path | None,
    most_pairs: int | None,
    pairs_seed: int,
    steps: int,
    pairs_per_step: int,
    seconds: float,
    encoder: str,
    training_tokens: int,
    word_vectors: Path | None,
    longformer: str,
    bigbird: str,
    small: bool,
    device: str | None,
    against: str,
    seed: int,
    quick: bool,
    data: Path,
    work: Path,
    out: Path | None,
) -> None:
    """Measure how well scorers tell matching pairs of TASK from others, and write a record for each.

    TASK is a task by name or a folder of the same layout; with a file of your own pairs any file of documents, with
    GWikiMatch the file of its articles, with AAN pairs a name, for they hold their texts.

    \b
    Example:
        python -m benchmarks.matching proposals --scorers tfidf,bm25,smith-np,colde --steps 500
        python -m benchmarks.matching aan_lra --pairs lra_release/tsv_data --split given --scorers bm25,han
    """
    if rule == SplitRule.GIVEN and pair_file is None:
        raise click.UsageError("--split given goes with --pairs; take --split document or --split pair")
    command = command_line("benchmarks.matching", context, leave_out=("data", "work", "out"))
    folder = out or (None if quick else RESULTS)
    asked = Asked(protocol, SplitRule(rule), pair_file, pairs_seed, QUICK_PAIRS if quick else most_pairs)
    try:
        prepared = prepared_pairs(name, data, asked)
        documents = prepared.documents
        trial = Trial(
            task=prepared.task,
            dataset=prepared.dataset,
            protocol=protocol if pair_file is None else GIVEN_PAIRS,
            rule=asked.rule,
            documents={one: first_words(documents[one], QUICK_WORDS) for one in documents} if quick else documents,
            splits=prepared.splits,
            n_lost=prepared.n_lost,
            budget=QUICK_BUDGET if quick else Budget(steps, pairs_per_step, seconds),
            is_quick=quick,
            origin=describe_origin(command, seed),
        )
    except EngineError as error:
        raise click.ClickException(str(error)) from error
    options = ScorerOptions(
        encoder=encoder,
        device=device,
        training_tokens=QUICK_TOKENS if quick else training_tokens,
        word_vectors=word_vectors,
        longformer=longformer,
        bigbird=bigbird,
        is_small=small or quick,
        work=work,
        documents=f"{prepared.dataset}-first{QUICK_WORDS}" if quick else prepared.dataset,
        tell=tell,
    )
    records, failed = measured(scorers, options, trial, folder)
    click.echo(matching_table(records, against))
    if failed:
        raise click.ClickException(f"{len(failed)} of {len(scorers)} scorers failed; {'; '.join(failed)}")


def measured(
    names: Sequence[str], options: ScorerOptions, trial: Trial, folder: Path | None
) -> tuple[list[MatchingRecord], list[str]]:
    """Measure scorers one after the other, and write each record when it is there.

    Returns:
        The records, and for each scorer that failed its name and why.
    """
    records: list[MatchingRecord] = []
    failed: list[str] = []
    for name in names:
        tell(f"{trial.task}: {len(trial.splits[Split.TEST]):,} test pairs to {name}")
        try:
            scorer = make_scorer(name, options)
            record = measure(scorer, trial, _not_default(scorer, options))
            if folder is not None:
                write_fields(record, folder)
        except EngineError as error:
            tell(f"{name}: {error}")
            failed.append(f"{name}: {error}")
            continue
        records.append(record)
    return records, failed


def _not_default(scorer: PairScorer, options: ScorerOptions) -> Settings:
    """The settings of a scorer that is not fitted yet which it would not have without being asked."""
    plain = replace(options, training_tokens=TRAINING_TOKENS, word_vectors=None, is_small=False)
    default = make_scorer(scorer.name, plain).settings
    return {name: value for name, value in scorer.settings.items() if default.get(name) != value}


if __name__ == "__main__":
    main()
