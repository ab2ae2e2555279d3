"""Texts of a recorded corpus as they were before masking, from the file of masked citations."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator

from benchmarks.datasets import DATA


def unmasked_parts(corpus: str) -> Iterator[tuple[str, list[tuple[str, str, list[str]]]]]:
    """The id of each document and, for each heading or text with citations: recorded, unmasked, the citations."""
    with gzip.open(DATA / corpus / "unmask.jsonl.gz", "rt", encoding="utf-8") as file:
        masked = {line["id"]: line["masked"] for line in map(json.loads, file)}
    with gzip.open(DATA / corpus / "corpus.jsonl.gz", "rt", encoding="utf-8") as file:
        for document in map(json.loads, file):
            parts = []
            for section, (headings, texts) in zip(document["sections"], masked[document["id"]], strict=True):
                parts += [(section[name], cited) for name, cited in (("heading", headings), ("text", texts)) if cited]
            yield document["id"], [(part, _unmasked(part, cited), cited) for part, cited in parts]


def _unmasked(part: str, cited: list[str]) -> str:
    left = iter(cited)
    text = re.sub(r"\[CITE\]", lambda _: next(left), part)
    assert next(left, None) is None
    return text
