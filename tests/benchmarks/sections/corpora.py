"""Corpora in the layouts of the section-level programs: one whose sections can be planted, one of labelled parts."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Sequence
from pathlib import Path

from engine.encoders.encoder import EncodedDocument, ModelExplanation
from engine.text.document import Document
from tests.fakes import FakeEncoder

COMMON = (
    "the of and in we is was old young fox dog river house bank light dark model vector search long document "
    "section query target score finds shows every some many few runs over under quick slow brown left right"
).split()


def _body(rng: random.Random, own: list[str], n_sentences: int = 7) -> str:
    """Sentences of 12 words, half of them the document's own."""
    sentences = (" ".join(rng.choice(COMMON + own * 5) for _ in range(12)) for _ in range(n_sentences))
    return " ".join(sentence.capitalize() + "." for sentence in sentences)


def write_long(folder: Path) -> Path:
    """24 documents of four to six sections; each document has eight words that no other one has."""
    rng = random.Random(0)
    folder.mkdir()
    with gzip.open(folder / "corpus.jsonl.gz", "wt", encoding="utf-8") as file:
        for number in range(24):
            own = [f"own{chr(97 + number)}{letter}" for letter in "abcdefgh"]
            sections = [{"heading": f"Part {part}", "text": _body(rng, own)} for part in range(4 + number % 3)]
            file.write(json.dumps({"id": f"d{number}", "title": f"Title {number}", "sections": sections}) + "\n")
    (folder / "qrels.tsv").write_text("query_id\tdoc_id\trelevance\nd0\td1\t1\nd2\td3\t1\n")
    (folder / "splits.json").write_text(json.dumps({"test": ["d0", "d2"]}))
    return folder


FACETED = {
    "q": [("background", "cats sleep all day"), ("method", "we count cats with care"), ("result", "ten cats")],
    "same method": [("background", "rockets burn fuel"), ("method", "we count cats with care"), ("result", "none")],
    "same background": [("objective", "cats sleep all day"), ("method", "stars are seen"), ("other", "thanks")],
    "no method": [("background", "tea is hot"), ("result", "ten cats")],
    "far": [("background", "ships sail far"), ("method", "wood is cut"), ("result", "much wood")],
}


def write_faceted(folder: Path) -> Path:
    """A small CSFCube: each facet has two folds of one query."""
    folder.mkdir()
    with gzip.open(folder / "corpus.jsonl.gz", "wt", encoding="utf-8") as file:
        for doc_id, parts in FACETED.items():
            sections = [{"heading": label, "text": text} for label, text in parts]
            file.write(json.dumps({"id": doc_id, "title": f"On {doc_id}", "sections": sections, "meta": {}}) + "\n")
    judged = {
        "background": {"same background": 3, "same method": 0, "no method": 0, "far": 1},
        "method": {"same background": 0, "same method": 2, "no method": 0, "far": 1},
        "result": {"same background": 0, "same method": 0, "no method": 2, "far": 0},
    }
    splits = {}
    for facet, candidates in judged.items():
        rows = [(query, name, value) for query in ("q", "far") for name, value in candidates.items() if name != query]
        rows += [("far", "q", 1)]
        lines = ["query_id\tdoc_id\trelevance", *("\t".join(map(str, row)) for row in rows)]
        (folder / f"qrels_{facet}.tsv").write_text("\n".join(lines))
        splits |= {facet: ["q", "far"], f"{facet}_fold1_test": ["q"], f"{facet}_fold2_test": ["far"]}
    (folder / "splits.json").write_text(json.dumps(splits))
    return folder


class Explaining(FakeEncoder):
    cannot_explain = None

    def explain(self, query: Document, targets: Sequence[Document]) -> list[ModelExplanation]:
        mine, *theirs = self.encode([query, *targets])
        return [explanation(query, mine, target, own) for target, own in zip(targets, theirs, strict=True)]


def explanation(query: Document, mine: EncodedDocument, target: Document, own: EncodedDocument) -> ModelExplanation:
    cosines = mine.chunks @ own.chunks.T
    sides = (query, mine.chunk_spans, cosines.sum(axis=1)), (target, own.chunk_spans, cosines.sum(axis=0))
    return ModelExplanation.of_chunks("made", "", *sides, cosines)
