"""A corpus of two classes with different words, in the layout of `benchmarks.probing`."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

WORDS = {"sea": "ship anchor wave", "sky": "cloud plane wing"}
SIZES = {"train": 8, "valid": 4, "test": 6}  # a class


def write_labelled(folder: Path) -> Path:
    folder.mkdir()
    splits: dict[str, list[str]] = {split: [] for split in SIZES}
    labels = ["doc_id\tlabel"]
    with gzip.open(folder / "corpus.jsonl.gz", "wt", encoding="utf-8") as file:
        for split, size in SIZES.items():
            for number in range(size):
                for label, words in WORDS.items():
                    doc_id = f"{split}-{label}{number}"
                    splits[split].append(doc_id)
                    labels.append(f"{doc_id}\t{label}")
                    text = f"{words} over the river number {number}"
                    file.write(json.dumps({"id": doc_id, "title": "", "text": text}) + "\n")
    (folder / "labels.tsv").write_text("\n".join(labels) + "\n")
    (folder / "splits.json").write_text(json.dumps(splits))
    return folder
