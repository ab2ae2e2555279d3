"""Measures the encoders of the papers, and other systems, in retrieval by long documents, on parts of equal size."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import click
import numpy as np

from benchmarks.baselines.pretrained import load_given
from benchmarks.baselines.text_baselines import TEXT_BASELINES
from benchmarks.datasets import TASKS
from benchmarks.markdown import interval_text, markdown, origins, p_cells
from benchmarks.measuring.measurement import Measurement, measurement
from benchmarks.metrics import PRIMARY
from benchmarks.options import log, names_of
from benchmarks.program import task
from benchmarks.quick import sized_part
from benchmarks.runs import Run
from benchmarks.significance import randomization_p
from benchmarks.tasks.retrieval import measure, open_trial, prepared_systems
from engine.encoders.backbone.weights import MINILM_NAME
from engine.encoders.trainable import TrainableEncoder
from engine.training.run.card import CARD_FILE

DOCUMENT, EVIDENCE = "document", "evidence"
SYSTEMS = (DOCUMENT, EVIDENCE, "words", "bm25", *TEXT_BASELINES)
_K = 100
_FACT = re.compile(r"^\| (begins with|steps|tokens read) \| (.+?) \|$", re.MULTILINE)
_NOTE = (
    "nDCG@10 [95 % bootstrap interval over queries] on a part of each corpus: {n_documents:,} documents, of which the "
    "first {n_words:,} words are read. Document vector: the cosine of document vectors; for a system without an "
    "encoder, its own score. Full score: the score of longmatch, with the chunk and document vectors of the encoder. "
    "Difference: the mean over all queries, to that of {base}, with p of a paired randomisation test, adjusted by "
    "Holm's method over a table. Tokens: read in training after the published parameters of {base}. Seconds: of "
    "indexing 1,000 documents of the parts."
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
    facts: EncoderFacts | None  # None for systems without an encoder


def encoder_facts(name: str) -> EncoderFacts:
    """The facts of an encoder, from its parameters and from its model card.

    Args:
        name: a folder, a name on a hub, or the bundled encoder.

    Raises:
        EncoderError: the encoder cannot be loaded.
    """
    encoder = load_given(name, device="cpu")
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
@click.option("--documents", "n_documents", type=click.IntRange(20), default=240, help="Documents of the part.")
@click.option("--words", "n_words", type=click.IntRange(1), default=1000, help="First words read of each document.")
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
        python -m benchmarks run architectures rfc --systems words,bm25,tfidf,doc2vec,wmd
    """
    dataset = call.dataset(name, split)
    if not call.is_quick:
        dataset = sized_part(
            dataset, split, call.work, n_documents, seed=call.seed, n_words=n_words, n_queries=n_documents // 6
        )
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


def architectures_table(runs: Sequence[Run]) -> str:
    """The table of document vectors, then that of full scores."""
    if not runs:
        return ""
    details = runs[0].details_as(ArchitectureDetails)
    note = _NOTE.format(n_documents=details.n_documents, n_words=details.n_words, base=MINILM_NAME)
    of_vectors = [run for run in runs if run.system != EVIDENCE]
    of_scores = [run for run in runs if run.system == EVIDENCE]
    tables = [
        _table(title, shown) for title, shown in (("Document vector", of_vectors), ("Full score", of_scores)) if shown
    ]
    return "\n".join([*(line for table in tables for line in table), note, "", *origins(runs)])


def _table(title: str, runs: Sequence[Run]) -> Iterator[str]:
    corpora = sorted(
        {run.corpus for run in runs},
        key=lambda name: (
            [*TASKS, name].index(name.partition("_")[0]) if name.partition("_")[0] in TASKS else len(TASKS)
        ),
    )
    rows = {(_label(run), run.corpus): run for run in runs}
    labels = list(dict.fromkeys(label for label, _ in rows))
    values = {label: _values([rows.get((label, corpus)) for corpus in corpora]) for label in labels}
    base = values.get(MINILM_NAME)
    tested = [label for label in labels if label != MINILM_NAME and _comparable(values[label], base)]
    p_of = dict(zip(tested, p_cells([randomization_p(values[label], base) for label in tested]), strict=True))  # type: ignore[arg-type]
    lines = []
    for label in sorted(labels, key=lambda one: -np.mean(values[one] or [0])):
        own = [rows[label, corpus] for corpus in corpora if (label, corpus) in rows]
        facts = own[0].details_as(ArchitectureDetails).facts
        gain = f"{np.mean(values[label]) - np.mean(base):+.3f} ({p_of[label]})" if label in p_of else ""  # type: ignore[arg-type]
        seconds = sum(run.fit_seconds for run in own if run.n_tokens)
        n_documents = sum(run.details_as(ArchitectureDetails).n_documents for run in own if run.n_tokens)
        cells = [interval_text(rows[label, corpus], PRIMARY) if (label, corpus) in rows else "-" for corpus in corpora]
        lines.append(
            [
                label,
                *cells,
                f"{np.mean([run.mean(PRIMARY) for run in own]):.3f}",
                gain,
                f"{facts.n_parameters / 1e6:.1f} M" if facts and facts.n_parameters else "",
                f"{facts.n_tokens:,}" if facts and facts.n_tokens else "",
                f"{1000 * seconds / n_documents:.0f}" if n_documents else "",
            ]
        )
    n_cases = {corpus: next(len(run.cases) for run in runs if run.corpus == corpus) for corpus in corpora}
    heads = [
        f"{corpus.partition('_')[0] if not corpus.startswith('wikipedia') else 'wikipedia_seealso'} ({n_cases[corpus]})"
        for corpus in corpora
    ]
    yield from markdown([title, *heads, "Mean", "Difference (p)", "Parameters", "Tokens", "Seconds"], lines)
    yield ""


def _label(run: Run) -> str:
    return run.encoder_name or run.system


def _values(runs: Sequence[Run | None]) -> list[float] | None:
    """The values of all queries of all corpora; None if a corpus is missing."""
    if any(run is None for run in runs):
        return None
    return [value for run in runs if run is not None for value in run.values(PRIMARY)]


def _comparable(values: list[float] | None, base: list[float] | None) -> bool:
    return values is not None and base is not None and len(values) == len(base)
