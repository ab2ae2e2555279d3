"""Measures the encoders of the papers, and other systems, in retrieval by long documents, on parts of equal size."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean

import click

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
    lines = _table("Document vector", of_vectors) + [""] * bool(of_vectors) + _table("Full score", of_scores)
    return "\n".join([*lines, "", note, "", *origins(runs)])


def _table(title: str, runs: Sequence[Run]) -> list[str]:
    if not runs:
        return []
    corpora = sorted({run.corpus for run in runs}, key=_place)
    of: dict[str, dict[str, Run]] = {}
    for run in runs:
        of.setdefault(run.encoder_name or run.system, {})[run.corpus] = run
    means = {label: fmean(run.mean(PRIMARY) for run in own.values()) for label, own in of.items()}
    base = _values(of.get(MINILM_NAME, {}), corpora)
    tested = {label: _values(own, corpora) for label, own in of.items() if label != MINILM_NAME}
    complete = {label: values for label, values in tested.items() if base and len(values) == len(base)}
    p_of = dict(zip(complete, p_cells([randomization_p(one, base) for one in complete.values()]), strict=True))
    rows = []
    for label in sorted(of, key=lambda one: (-means[one], one)):
        cells = [interval_text(of[label][corpus], PRIMARY) if corpus in of[label] else "-" for corpus in corpora]
        gain = f"{fmean(complete[label]) - fmean(base):+.3f} ({p_of[label]})" if label in complete else ""
        rows.append([label, *cells, f"{means[label]:.3f}", gain, *_cost(list(of[label].values()))])
    n_cases = {run.corpus: len(run.cases) for run in runs}
    heads = [f"{_whole(corpus)} ({n_cases[corpus]})" for corpus in corpora]
    return markdown([title, *heads, "Mean", "Difference (p)", "Parameters", "Tokens", "Seconds"], rows)


def _cost(runs: Sequence[Run]) -> list[str]:
    """The cells of parameters, tokens and seconds for 1,000 documents; "" where there is none."""
    details = [run.details_as(ArchitectureDetails) for run in runs]
    facts = details[0].facts
    encoded = [(run.fit_seconds, of.n_documents) for run, of in zip(runs, details, strict=True) if run.n_tokens]
    seconds = 1000 * sum(one for one, _ in encoded) / max(1, sum(n for _, n in encoded))
    return [
        f"{facts.n_parameters / 1e6:.1f} M" if facts and facts.n_parameters else "",
        f"{facts.n_tokens:,}" if facts and facts.n_tokens else "",
        f"{seconds:.0f}" if seconds else "",
    ]


def _values(runs: Mapping[str, Run], corpora: Sequence[str]) -> list[float]:
    """The values of all queries, corpus by corpus; fewer than those of a system with runs of all corpora."""
    return [value for corpus in corpora if corpus in runs for value in runs[corpus].values(PRIMARY)]


def _whole(corpus: str) -> str:
    """The name of the corpus of which `corpus` is a part."""
    return next((name for name in TASKS if corpus.startswith(name)), corpus)


def _place(corpus: str) -> tuple[int, str]:
    whole = _whole(corpus)
    return (list(TASKS).index(whole) if whole in TASKS else len(TASKS)), corpus
