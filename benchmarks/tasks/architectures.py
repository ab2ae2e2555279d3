"""Measures the encoders and scorers of the papers in retrieval by long documents, on parts of equal size."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean, stdev

import click
import numpy as np
import torch

from benchmarks.baselines.pretrained import load_given
from benchmarks.baselines.text_baselines import TEXT_BASELINES
from benchmarks.datasets import TASKS, Dataset, DatasetError, Qrels, checksum, read_documents
from benchmarks.markdown import markdown, origins, p_cells
from benchmarks.measuring.measurement import Measurement, measurement
from benchmarks.metrics import PRIMARY
from benchmarks.pair_judging import finite_scores
from benchmarks.pair_scorer import Pair, PairScorer
from benchmarks.program import log, names_of, task
from benchmarks.quick import sized_part
from benchmarks.runs import Run, ranked_case
from benchmarks.significance import bootstrap_interval, randomization_p
from benchmarks.systems import Ranking
from benchmarks.tasks.retrieval import Trial, measure, open_trial, prepared_systems, rank
from engine.encoders.files import MINILM_NAME
from engine.encoders.trainable import TrainableEncoder
from engine.text.document import Document
from engine.training.card import CARD_FILE

DOCUMENT, EVIDENCE = "document", "evidence"
SYSTEMS = (DOCUMENT, EVIDENCE, "words", "bm25", *TEXT_BASELINES)
N_DOCUMENTS, N_WORDS = 240, 1000  # of a part
_WORDS = "words"
_DEPTH = 20  # targets that words find and scorers of pairs put into another order
_BEST = "at best"
_K = 100
_FACT = re.compile(r"^\| (begins with|steps|tokens read) \| (.+?) \|$", re.MULTILINE)
_NOTE = (
    "nDCG@10 [95 % bootstrap interval over queries] on a part of each corpus: {n_documents:,} documents, of which the "
    "first {n_words:,} words are read. Document vector: the cosine of document vectors; for a system without an "
    "encoder, its own score. Full score: the score of longmatch, with the chunk and document vectors of the encoder. "
    "Re-ranked: the first {depth} targets of the system words, in the order of a scorer of pairs; {best}: in that of "
    "their relevance. Difference: the mean over all queries, to that of the system without one, with p of a paired "
    "randomisation test, adjusted by Holm's method over a table. Several seeds of training: the mean of each query, "
    "with the standard deviation of the means. Tokens: read in training after the published parameters of {base}; for "
    "a scorer without them, words or trigrams of letters. Seconds: of indexing 1,000 documents of the parts, and the "
    "commit that was measured. Commits were measured at different times, not all on equal processors and as many "
    "threads: compare the seconds of one commit alone."
)


@dataclass(frozen=True)
class EncoderFacts:
    """The size of an encoder, and what it was trained on."""

    n_parameters: int
    begins_with: str = ""
    steps: int = 0
    n_tokens: int = 0  # read in training, repeated ones counted again; 0 if unknown or untrained


@dataclass(frozen=True)
class ArchitectureDetails:
    """The details of a run of this task."""

    n_documents: int
    n_words: int  # read of each document, at most
    facts: EncoderFacts | None  # None for systems without parameters
    depth: int = 0  # first targets of words that were put into another order; 0 where all documents were ranked


def encoder_facts(name: str) -> EncoderFacts:
    """The facts of an encoder, from its parameters and from its model card."""
    encoder = load_given(name, device="cpu", dtype=torch.float32)
    if not isinstance(encoder, TrainableEncoder):
        return EncoderFacts(0)
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
    ready = prepared_systems([_WORDS], part, MINILM_NAME, call.work, exact=True)
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
        else [_named(dataset, target) for target, _ in ranking[:_DEPTH]]
        for query, ranking in part.first.items()
    }
    found = scored(scorer, asked)
    order = {
        query: [(name.removeprefix(_named(dataset, "")), score) for name, score in found[_named(dataset, query)]]
        for query in part.first
    }
    again = _ranking_run(scorer, part, reranked(part.first, order, _DEPTH), depth=_DEPTH)
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


def architectures_table(runs: Sequence[Run]) -> str:
    """The table of document vectors, that of full scores, and that of re-ranked targets."""
    if not runs:
        return ""
    depth_of = {id(run): run.details_as(ArchitectureDetails).depth for run in runs}
    again = [run for run in runs if depth_of[id(run)]]
    whole = [run for run in runs if not depth_of[id(run)]]
    of_vectors = [run for run in whole if run.system != EVIDENCE]
    of_scores = [run for run in whole if run.system == EVIDENCE]
    words = [run for run in whole if run.system == _WORDS] if again else []
    tables = (
        _table("Document vector", of_vectors, MINILM_NAME),
        _table("Full score", of_scores, MINILM_NAME),
        _table("Re-ranked", [*again, *words, *map(_at_best, words)], _WORDS, has_cost=False),
    )
    details = runs[0].details_as(ArchitectureDetails)
    n_documents, n_words = details.n_documents, details.n_words
    note = _NOTE.format(n_documents=n_documents, n_words=n_words, base=MINILM_NAME, depth=_DEPTH, best=_BEST)
    return "\n".join([*(line for table in tables if table for line in (*table, "")), note, "", *origins(runs)])


def _at_best(words: Run) -> Run:
    """The first targets of words in the order of their relevance."""
    qrels = {case.id: case.relevant for case in words.cases}
    rankings = {case.id: case.ranking for case in words.cases}
    best = reranked(rankings, by_relevance(rankings, qrels), _DEPTH)
    cases = [replace(case, ranking=best[case.id]) for case in words.cases]
    return replace(words, system=_BEST, cases=cases)


def _label(run: Run) -> str:
    """The encoder, or the scorer of pairs; seeds of training are joined."""
    is_encoder = run.system in (DOCUMENT, EVIDENCE)
    return run.encoder_without_seed if is_encoder else run.system


def _table(title: str, runs: Sequence[Run], base_label: str, *, has_cost: bool = True) -> list[str]:
    """The rows of systems, the best first; runs of a system that differ in the seed of training are one row."""
    if not runs:
        return []
    corpora = sorted({run.corpus for run in runs}, key=_place)
    of: defaultdict[str, defaultdict[str, list[Run]]] = defaultdict(lambda: defaultdict(list))
    for run in runs:
        of[_label(run)][run.corpus].append(run)
    values = {label: {corpus: _values(own) for corpus, own in found.items()} for label, found in of.items()}
    means = {label: fmean(fmean(one) for one in own.values()) for label, own in values.items()}
    all_values = {label: [one for corpus in corpora for one in own.get(corpus, ())] for label, own in values.items()}
    base = all_values.get(base_label, [])
    complete = {
        label: own for label, own in all_values.items() if base and label != base_label and len(own) == len(base)
    }
    p_of = dict(zip(complete, p_cells([randomization_p(one, base) for one in complete.values()]), strict=True))
    rows = []
    for label in sorted(of, key=lambda one: (-means[one], one)):
        cells = [_interval(values[label][corpus]) if corpus in values[label] else "-" for corpus in corpora]
        gain = f"{fmean(complete[label]) - fmean(base):+.3f} ({p_of[label]})" if label in complete else ""
        found = [run for own in of[label].values() for run in own]
        cost = _cost(found) if has_cost else []
        rows.append([label, *cells, f"{means[label]:.3f}{_spread(of[label])}", gain, *cost])
    n_cases = {run.corpus: len(run.cases) for run in runs}
    heads = [f"{_whole(corpus)} ({n_cases[corpus]})" for corpus in corpora]
    costs = ["Parameters", "Tokens", "Seconds"] if has_cost else []
    return markdown([title, *heads, "Mean", "Difference (p)", *costs], rows)


def _interval(values: Sequence[float]) -> str:
    low, high = bootstrap_interval(values)
    return f"{fmean(values):.3f} [{low:.3f}, {high:.3f}]"


def _spread(of_corpus: Mapping[str, Sequence[Run]]) -> str:
    """The standard deviation of the mean over corpora between seeds; "" for one seed."""
    n_seeds = {len(runs) for runs in of_corpus.values()}
    if n_seeds == {1}:
        return ""
    by_seed = zip(*(sorted(runs, key=lambda run: run.name) for runs in of_corpus.values()), strict=False)
    means = [fmean(run.mean(PRIMARY) for run in runs) for runs in by_seed]
    return f" ± {stdev(means):.3f} ({len(means)} seeds)" if len(means) > 1 else ""


def _cost(runs: Sequence[Run]) -> list[str]:
    """The cells of parameters, tokens and seconds for 1,000 documents with their commits; "" where there is none."""
    details = [run.details_as(ArchitectureDetails) for run in runs]
    facts = details[0].facts
    encoded = [(run.fit_seconds, of.n_documents) for run, of in zip(runs, details, strict=True) if run.n_tokens]
    seconds = 1000 * sum(one for one, _ in encoded) / max(1, sum(n for _, n in encoded))
    commits = ", ".join(dict.fromkeys(run.origin.commit[:7] for run in runs if run.n_tokens))
    return [
        f"{facts.n_parameters / 1e6:.1f} M" if facts and facts.n_parameters else "",
        f"{facts.n_tokens:,}" if facts and facts.n_tokens else "",
        f"{seconds:.0f} ({commits})" if seconds else "",
    ]


def _values(runs: Sequence[Run]) -> list[float]:
    """The value of each query: the mean over runs that differ only in their seed."""
    return [float(one) for one in np.mean([run.values(PRIMARY) for run in runs], axis=0)]


def _whole(corpus: str) -> str:
    """The name of the corpus of which `corpus` is a part."""
    return next((name for name in TASKS if corpus.startswith(name)), corpus)


def _place(corpus: str) -> tuple[int, str]:
    whole = _whole(corpus)
    return (list(TASKS).index(whole) if whole in TASKS else len(TASKS)), corpus


def scored(scorer: PairScorer, wanted: Mapping[str, Collection[str]]) -> dict[str, Ranking]:
    """Rank targets by a fitted scorer, for each query; equal scores keep the order of the targets."""
    # Scorers do not read is_match of a pair.
    pairs = [Pair(query, target, is_match=False) for query, targets in wanted.items() for target in targets]
    of_pair = dict(zip(((one.first, one.second) for one in pairs), finite_scores(scorer, pairs).tolist(), strict=True))
    return {query: _sorted({target: of_pair[query, target] for target in targets}) for query, targets in wanted.items()}


def reranked(rankings: Mapping[str, Ranking], order: Mapping[str, Ranking], depth: int) -> dict[str, Ranking]:
    """Put the first `depth` targets of each query into the order of another ranking, which has all of them.

    Targets below keep their ranks. Scores of two systems cannot be compared, so the new scores count down to 1.
    """
    ranked = {}
    for query, ranking in rankings.items():
        targets = [target for target, _ in ranking]
        first = set(targets[:depth])
        new = [*(target for target, _ in order[query] if target in first), *targets[depth:]]
        ranked[query] = [(target, float(len(new) - place)) for place, target in enumerate(new)]
    return ranked


def by_relevance(rankings: Mapping[str, Ranking], qrels: Qrels) -> dict[str, Ranking]:
    """The targets of each query by relevance: the best possible order."""
    return {
        query: _sorted({target: float(qrels[query].get(target, 0)) for target, _ in ranking})
        for query, ranking in rankings.items()
    }


def _sorted(scores: Mapping[str, float]) -> Ranking:
    targets = list(scores)
    order = np.argsort(-np.array(list(scores.values())), kind="stable")
    return [(targets[int(at)], scores[targets[int(at)]]) for at in order]
