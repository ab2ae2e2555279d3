"""Helpers for the tests of comparisons: a small scale, conditions, and small corpora in place of the real ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks.papers.backbones import backbone_label
from benchmarks.papers.comparison import Conditions, Scale
from indexer.origin import Origin
from tests.benchmarks.labelled_corpus import write_labelled
from tests.benchmarks.pairs.linked_corpus import write_linked

SCALE = Scale(steps=3, batch=8, training_tokens=96, max_words=50, n_train=12, n_test=6)
COLDE_SIZES = {"chunk_tokens": "12", "lstm_width": "16", "projection_width": "24"}


def conditions(folder: Path, backbone: Path, origin: Origin, **scale: int) -> Conditions:
    sized = replace(SCALE, **scale)
    label = backbone_label(str(backbone)) if (backbone / "config.json").exists() else "bert@0"
    return Conditions(sized, str(backbone), label, "cpu", folder / "data", folder / "work", False, origin)


def write_citations(data: Path) -> Path:
    """A corpus with links in the place of the papers of CL-SciSumm that cite each other."""
    data.mkdir(exist_ok=True)
    dataset = write_linked(data / "clscisumm")
    dataset.qrels.rename(dataset.qrels.with_name("qrels_citation.tsv"))
    dataset.splits.rename(dataset.splits.with_name("splits_citation.json"))
    return data


def write_articles(data: Path) -> Path:
    """A corpus in the place of the articles of Wikipedia, and one with classes beside it."""
    data.mkdir(exist_ok=True)
    write_linked(data / "wikipedia_seealso")
    write_labelled(data / "bbc_news")
    return data
