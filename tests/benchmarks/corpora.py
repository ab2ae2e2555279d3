"""Small corpora in the layouts of the benchmarks, and an index with vectors that have topics; no text was encoded."""

import json
import random
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np

from benchmarks.datasets import Dataset, open_dataset
from benchmarks.fetching.sources import HEADER, CorpusDocument, corpus_document
from benchmarks.formats.trec import write_json_lines
from benchmarks.pairs.building import Relations, Split, undirected
from engine.encoders.encoder import EncodedDocument, ModelExplanation, unit
from engine.store.writer import Writer
from engine.text.document import Document
from engine.text.segmentation import Chunk, Coverage
from tests.fakes import FakeEncoder, make_document

Judged: TypeAlias = tuple[str, str, int]  # query, target, relevance


def write_dataset(
    folder: Path, documents: Iterable[CorpusDocument], judged: Iterable[Judged], splits: Mapping[str, Sequence[str]]
) -> Dataset:
    """Write a dataset in the layout of `benchmarks.datasets`."""
    folder.mkdir()
    write_json_lines(folder / "corpus.jsonl.gz", documents)
    write_judgments(folder / "qrels.tsv", judged)
    (folder / "splits.json").write_text(json.dumps(splits))
    return open_dataset(str(folder))


def write_judgments(path: Path, judged: Iterable[Judged]) -> None:
    path.write_text(HEADER + "".join(f"{query}\t{target}\t{relevance}\n" for query, target, relevance in judged))


WIDTH = 16
N_DOCUMENTS = 240


def write_real_index(folder: Path) -> None:
    """Two shards of documents on thirty topics, each with a word and a mean direction of its own."""
    rng = np.random.default_rng(0)
    topics = np.eye(WIDTH)[3] + rng.standard_normal((30, WIDTH)) / np.sqrt(np.arange(1, WIDTH + 1))
    made = []
    for number in range(N_DOCUMENTS):
        vectors = made_vectors(rng, topics[number % len(topics)])
        sections = [(f"part {part}", f"topic{number % len(topics)} d{number}") for part in range(len(vectors.sections))]
        made.append((make_document(f"d{number}", sections), vectors))
    with Writer(folder) as writer:
        writer.claim({"name": "made", "fingerprint": "m" * 32, "width": WIDTH})
        writer.commit(made[:100])
        writer.commit(made[100:])


def made_vectors(rng: np.random.Generator, topic: np.ndarray) -> EncodedDocument:
    """Some chunks around a document that lies around a topic; one section for every two of them."""
    spectrum = 1 / np.sqrt(np.arange(1, WIDTH + 1))
    centre = topic + 0.8 * spectrum * rng.standard_normal(WIDTH)
    n_chunks = int(rng.integers(2, 8))
    chunks = unit((centre + 0.8 * spectrum * rng.standard_normal((n_chunks, WIDTH))).astype(np.float32))
    sections = unit(np.stack([chunks[first : first + 2].sum(0) for first in range(0, n_chunks, 2)]))
    spans = tuple(Chunk(number // 2, 5 * number, 5 * number + 4, 3 + number) for number in range(n_chunks))
    return EncodedDocument(unit(chunks.sum(0)), sections, chunks, spans, Coverage(9, 9))


N_TOPICS, N_EACH = 9, 10
DOC_IDS = [f"d{number:02d}" for number in range(N_TOPICS * N_EACH)]
WORDS = (
    "the a of and in we is was old young fox dog river house bank light dark model vector search long document "
    "section chunk query target score finds shows every some many few runs jumps over under through quick slow"
).split()


def linked(seed: int = 0) -> Relations:
    """Every document links to three others of its topic, one with relevance 2; a third of the documents is held out."""
    rng = np.random.default_rng(seed)
    links: dict[str, dict[str, int]] = {}
    for number, doc_id in enumerate(DOC_IDS):
        fellows = [other for other in range(len(DOC_IDS)) if other % N_TOPICS == number % N_TOPICS and other != number]
        chosen = rng.permutation(fellows)[:3]
        links[doc_id] = {DOC_IDS[int(other)]: 2 if place == 0 else 1 for place, other in enumerate(chosen)}
    held = {doc_id: Split.TEST for doc_id in DOC_IDS[:15]} | {doc_id: Split.VALID for doc_id in DOC_IDS[15:30]}
    trainable = frozenset(
        undirected(query, target)
        for query, targets in links.items()
        for target in targets
        if query not in held and target not in held
    )
    return Relations(links, trainable, held)


def write_linked(folder: Path) -> Dataset:
    """Write the documents and their links as files; words of a text are of its topic, or common ones."""
    relations, rng = linked(), np.random.default_rng(0)
    documents = []
    for number, doc_id in enumerate(DOC_IDS):
        own = WORDS[4 * (number % N_TOPICS) : 4 * (number % N_TOPICS) + 4]
        bodies = [" ".join(rng.choice([*own * 6, *WORDS], 30)) + "." for _ in range(2)]
        documents.append(corpus_document(doc_id, "", [(f"part {part}", body) for part, body in enumerate(bodies)], {}))
    judged = [(query, target, grade) for query, own in relations.links.items() for target, grade in own.items()]
    splits = {split.value: [one for one, own in relations.held.items() if own is split] for split in Split}
    splits["train"] = [doc_id for doc_id in DOC_IDS if doc_id not in relations.held]
    return write_dataset(folder, documents, judged, splits)


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
    documents = []
    for number in range(24):
        own = [f"own{chr(97 + number)}{letter}" for letter in "abcdefgh"]
        sections = [(f"Part {part}", _body(rng, own)) for part in range(4 + number % 3)]
        documents.append(corpus_document(f"d{number}", f"Title {number}", sections, {}))
    write_dataset(folder, documents, [("d0", "d1", 1), ("d2", "d3", 1)], {"test": ["d0", "d2"]})
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
    documents = [corpus_document(doc_id, f"On {doc_id}", parts, {}) for doc_id, parts in FACETED.items()]
    write_json_lines(folder / "corpus.jsonl.gz", documents)
    judged = {
        "background": {"same background": 3, "same method": 0, "no method": 0, "far": 1},
        "method": {"same background": 0, "same method": 2, "no method": 0, "far": 1},
        "result": {"same background": 0, "same method": 0, "no method": 2, "far": 0},
    }
    splits = {}
    for facet, candidates in judged.items():
        rows = [(query, name, value) for query in ("q", "far") for name, value in candidates.items() if name != query]
        write_judgments(folder / f"qrels_{facet}.tsv", [*rows, ("far", "q", 1)])
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
