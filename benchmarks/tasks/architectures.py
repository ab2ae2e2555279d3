"""Measures the encoders and scorers of the papers in retrieval by long documents, on parts of equal size."""

from __future__ import annotations

import re
from dataclasses import asdict, replace
from pathlib import Path

import click
import torch

from benchmarks.lexical import LEXICAL
from benchmarks.program import Measurement, log, measurement, names_of, task
from benchmarks.quick import sized_part
from benchmarks.runs import Run
from benchmarks.tables.encoders import DOCUMENT, EVIDENCE, ArchitectureDetails, EncoderFacts, architectures_table
from benchmarks.tasks.retrieval import measure, open_trial, prepared_systems
from engine.encoders.files import CARD_FILE, MINILM_NAME
from engine.encoders.loading import load_trainable

SYSTEMS = (DOCUMENT, EVIDENCE, "words", *LEXICAL)
N_DOCUMENTS, N_WORDS = 240, 1000  # of a part
_K, SPLIT = 100, "test"
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
@measurement(seed="Seed of the part, and of tests and intervals.", quick="Few short documents", encodes=True)
def main(
    call: Measurement,
    name: str,
    encoders: tuple[str, ...],
    systems: tuple[str, ...],
    n_documents: int,
    n_words: int,
) -> None:
    """Rank a part of DATASET by document vectors and by the full score of encoders, a run for each.

    The part has a sixth as many queries as documents. An encoder is a folder, a name on a hub, or the bundled one.

    \b
    Example:
        python -m benchmarks run pairs clscisumm --systems smith-wp-sp,colde --steps 40 --save encoders
        python -m benchmarks run architectures rfc --encoder encoders/smith-wp-sp --encoder encoders/colde
        python -m benchmarks run architectures rfc --systems words,bm25,tfidf
    """
    dataset = call.dataset(name, SPLIT)
    if not call.is_quick:
        sizes = {"n_words": n_words, "n_queries": n_documents // 6}
        dataset = sized_part(dataset, SPLIT, call.work, n_documents, seed=call.seed, **sizes)
    trial = open_trial(dataset, SPLIT, _K, call.origin)
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
        ready = prepared_systems(chosen, dataset, encoder, call.work, exact=True)
        for system, cost in ready:
            log(f"{dataset.name}: {system.name} {Path(encoder).name}")
            run, _ = measure(system, cost, trial)
            runs.append(replace(run, task="architectures", variant="", details=asdict(details)))
            call.keep(runs[-1])
    click.echo(architectures_table(runs))
