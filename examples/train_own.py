"""Trains an encoder on proposals that cite each other: python examples/train_own.py FOLDER OUT [--steps N].

Any corpus works in which documents name each other; only `cited` and `name` have to be written for it.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
from collections.abc import Mapping
from pathlib import Path

from engine.readers import read_document
from engine.text.document import Document
from engine.training.trainer import TrainerSettings
from indexer.training.recipe import Recipe
from indexer.training.run import train
from indexer.training.start import Start

_CITATION = re.compile(r"\b(EIP|PEP)[- ](\d{1,4})\b")


def cited(document: Document) -> set[str]:
    """The proposals that a text names, as "EIP 2718"."""
    return {f"{family} {int(number)}" for family, number in _CITATION.findall(document.text)}


def name(document: Document) -> str:
    """The name by which others cite a proposal."""
    return f"{str(document.metadata['family']).upper()} {document.metadata['number']}"


def write_corpus(folder: Path, documents: Mapping[str, Document]) -> int:
    """Write the training corpus: documents, pairs and the queries of validation; return the number of pairs."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "corpus.jsonl").open("w") as lines:
        for key, one in documents.items():
            lines.write(json.dumps({"id": key, "title": one.title, "text": one.text}) + "\n")
    pairs = [(key, other) for key, one in documents.items() for other in sorted(cited(one) & set(documents) - {key})]
    queries = sorted({query for query, _ in pairs})
    valid = queries[::5]
    for file, wanted in (("train_pairs.tsv", set(queries) - set(valid)), ("qrels.tsv", set(queries))):
        with (folder / file).open("w", newline="") as lines:
            rows = csv.writer(lines, delimiter="\t", lineterminator="\n")
            rows.writerow(["query_id", "doc_id", "relevance"])
            rows.writerows((query, target, 1) for query, target in pairs if query in wanted)
    splits = {"train": [query for query in queries if query not in valid], "valid": valid}
    (folder / "splits.json").write_text(json.dumps(splits))
    return len(pairs)


def main() -> None:
    """Read, write the corpus, train."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="proposals with front matter, as demo/corpus/eips")
    parser.add_argument("out", type=Path, help="folder of the new encoder")
    parser.add_argument("--encoder", default="longmatch-minilm")
    parser.add_argument("--steps", type=int, default=100)
    given = parser.parse_args()
    documents = [read_document(file) for file in sorted(given.folder.glob("*.md"))]
    n_pairs = write_corpus(given.out / "corpus", {name(one): one for one in documents})
    print(f"{len(documents)} documents, {n_pairs} pairs")
    settings = TrainerSettings(steps=given.steps, validate_every=max(1, given.steps // 2))
    recipe = Recipe(start=Start(given.encoder), trainer=settings)
    trained = train(given.out / "encoder", [given.out / "corpus"], recipe)
    print(f"next: longmatch index papers.lm DOCUMENTS --encoder {trained.folder}")


if __name__ == "__main__":
    main()
