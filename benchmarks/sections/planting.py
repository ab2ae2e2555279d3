"""Plants sections of documents in unrelated ones, chosen by words alone, copied or damaged."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise

import numpy as np

from benchmarks.datasets import DatasetError
from benchmarks.systems import DocumentCosine
from engine.encoders.encoder import Encoder, ModelExplanation, strongest_pairs
from engine.index import Index
from engine.scoring.parts import Breakdown
from engine.search.request import Request
from engine.text.document import Document
from engine.text.segmentation import Section, Span, sentence_starts

_WORD = re.compile(r"\S+\s*")
_GAP = "\n\n"


class Damage(StrEnum):
    """The change to a passage before it is planted."""

    COPY = "copy"
    DROP_10 = "drop 10 %"
    DROP_30 = "drop 30 %"
    DROP_50 = "drop 50 %"
    SHUFFLE = "shuffle"


class Position(StrEnum):
    """The place of a passage in the host."""

    BEGINNING = "beginning"
    MIDDLE = "middle"
    END = "end"


@dataclass(frozen=True, slots=True)
class Passage:
    """A section of the query document."""

    heading: str
    text: str  # without the heading's line


@dataclass(frozen=True, slots=True)
class Planted:
    """A host with a passage in it."""

    document: Document
    span: Span  # of the passage in the text of the host, a heading of its own included
    section: int  # number of the section that holds it


def drop_words(text: str, share: float, rng: np.random.Generator) -> str:
    """Leave out a share of the words, drawn without repetition; the others keep order and white space."""
    words = _WORD.findall(text)
    dropped = set(rng.permutation(len(words))[: round(share * len(words))].tolist())
    return "".join(word for number, word in enumerate(words) if number not in dropped).strip()


def shuffle_sentences(text: str, rng: np.random.Generator) -> str:
    """Put the sentences into a random order, a space between them."""
    starts = [*sentence_starts(text), len(text)]
    sentences = [text[start:stop].strip() for start, stop in pairwise(starts)]
    return " ".join(sentences[number] for number in rng.permutation(len(sentences)))


_DAMAGES: Mapping[Damage, Callable[[str, np.random.Generator], str]] = {
    Damage.COPY: lambda text, rng: text,
    Damage.DROP_10: lambda text, rng: drop_words(text, 0.1, rng),
    Damage.DROP_30: lambda text, rng: drop_words(text, 0.3, rng),
    Damage.DROP_50: lambda text, rng: drop_words(text, 0.5, rng),
    Damage.SHUFFLE: shuffle_sentences,
}


def damaged(passage: Passage, damage: Damage, rng: np.random.Generator) -> Passage:
    """The passage with damaged text; unless it is a copy, without its heading, which alone would identify it."""
    heading = passage.heading if damage is Damage.COPY else ""
    return replace(passage, heading=heading, text=_DAMAGES[damage](passage.text, rng))


def plant(host: Document, passage: Passage, position: Position) -> Planted:
    """Put a passage into a host of two sections or more.

    It is put before all sections, after all, or at the border of two that is nearest to the middle of the text, with
    its own heading if it has one. Page numbers are dropped.
    """
    at = _offset(host.text, [section.start for section in host.sections], position)
    lead = _GAP if at and not host.text[:at].endswith(_GAP) else ""
    body = f"{passage.heading}{_GAP}{passage.text}" if passage.heading else passage.text
    block = lead + body + _GAP
    sections = [section if section.start < at else _moved(section, len(block)) for section in host.sections]
    number = sum(section.start < at for section in host.sections)
    path = (passage.heading,) if passage.heading else ()
    sections.insert(number, Section(passage.heading, path, at, at + len(block)))
    document = replace(host, text=host.text[:at] + block + host.text[at:], sections=tuple(sections), pages=(), pins=())
    return Planted(document, Span(at + len(lead), at + len(lead) + len(body)), number)


def _offset(text: str, borders: list[int], position: Position) -> int:
    if position is Position.MIDDLE:
        return min(borders[1:] or borders, key=lambda border: abs(border - len(text) // 2))
    return 0 if position is Position.BEGINNING else len(text)


def _moved(section: Section, by: int) -> Section:
    return replace(section, start=section.start + by, stop=section.stop + by)


LENGTHS = ("short", "medium", "long")  # thirds of the hosts by their words
MIN_WORDS, MAX_WORDS = 60, 400  # of a planted section
MIN_SENTENCES = 3
MIN_RARE_WORDS = 5  # a section without words of its own is boilerplate, which matches every document
RARE_SHARE = 0.02  # of the documents that hold a rare word, at most; a word of two documents is always rare
_LETTERS = re.compile(r"[^\W\d_]{3,}")


@dataclass(frozen=True, slots=True)
class Adoption:
    """A section of a document, and the host that is to hold it."""

    query: str  # the document that the section is of
    section: int
    passage: Passage
    host: str
    length: str  # of the host, one of `LENGTHS`
    n_shared: int  # rare words that the whole query and the host have in common


def choose_adoptions(documents: Sequence[Document], n_per_length: int, seed: int) -> list[Adoption]:
    """Draw queries with a section of their own, and for each the host that shares least with it.

    A word is rare if at most 2 % of the documents hold it, or at most two. A section can be planted if it has 60 to
    400 words, three sentences, and five rare words; the first section, which holds the title, cannot. Of the hosts of a
    length each query gets the one with the fewest rare words in common. No document is a host or a query twice, or
    both.
    """
    rng = np.random.default_rng(seed)
    rare = _rare_words(documents)
    shuffled = [documents[number] for number in rng.permutation(len(documents))]
    n = n_per_length * len(LENGTHS)
    queries = [(document, places) for document in shuffled if (places := _plantable(document, rare[document.doc_id]))]
    queries = queries[:n]
    taken = {document.doc_id for document, _ in queries}
    hosts = [document for document in shuffled if document.doc_id not in taken and len(document.sections) > 1]
    if len(queries) < n or len(hosts) < n:
        raise DatasetError(
            f"{n} plantings need {n} queries with a section to plant and {n} hosts of two sections; {len(documents)} "
            f"documents have {len(queries)} and {len(hosts)}; plant fewer, or take more documents"
        )
    by_length = split_by_length(hosts)
    adoptions = []
    for number, (query, places) in enumerate(queries):
        length = LENGTHS[number % len(LENGTHS)]
        shared = [len(rare[query.doc_id] & rare[host.doc_id]) for host in by_length[length]]
        nearest = int(np.argmin(shared))
        host = by_length[length].pop(nearest)
        section = int(rng.choice(places))
        passage = _passage(query, query.sections[section])
        adoptions.append(Adoption(query.doc_id, section, passage, host.doc_id, length, shared[nearest]))
    return adoptions


def split_by_length(hosts: Sequence[Document]) -> dict[str, list[Document]]:
    """Thirds by words, each in the order given; each holds a third of them, or one less or more."""
    order = sorted(range(len(hosts)), key=lambda number: (n_words(hosts[number]), number))
    thirds = np.array_split(np.array(order), len(LENGTHS))
    return {length: [hosts[i] for i in sorted(third.tolist())] for length, third in zip(LENGTHS, thirds, strict=True)}


def n_words(document: Document) -> int:
    """The number of words, separated by white space."""
    return len(document.text.split())


def _rare_words(documents: Sequence[Document]) -> dict[str, frozenset[str]]:
    """The rare words of each document."""
    words = {document.doc_id: frozenset(_LETTERS.findall(document.text.lower())) for document in documents}
    counts = Counter(word for own in words.values() for word in own)
    most = max(2, int(RARE_SHARE * len(documents)))
    return {name: frozenset(word for word in own if counts[word] <= most) for name, own in words.items()}


def _plantable(document: Document, rare: frozenset[str]) -> list[int]:
    return [
        number
        for number, section in enumerate(document.sections)
        if number and section.n_parts == 1 and _is_plantable(_passage(document, section).text, rare)
    ]


def _is_plantable(text: str, rare: frozenset[str]) -> bool:
    return (
        MIN_WORDS <= len(text.split()) <= MAX_WORDS
        and len(sentence_starts(text)) >= MIN_SENTENCES
        and len(rare.intersection(_LETTERS.findall(text.lower()))) >= MIN_RARE_WORDS
    )


def _passage(document: Document, section: Section) -> Passage:
    text = document.text[section.start : section.stop].strip()
    return Passage(section.heading, text.removeprefix(section.heading).strip())


def host_words(documents: Mapping[str, Document], adoptions: Sequence[Adoption]) -> dict[str, list[int]]:
    """Words of the shortest and of the longest host that was chosen, by length."""
    words: dict[str, list[int]] = {}
    for adoption in adoptions:
        words.setdefault(adoption.length, []).append(n_words(documents[adoption.host]))
    return {length: [min(own), max(own)] for length, own in words.items()}


@dataclass(frozen=True, slots=True)
class Overlap:
    """Overlap of named spans with the true span, in characters; each value in [0, 1]."""

    iou: float  # intersection over union
    precision: float  # share of the named characters that are true; 0 where none is named
    recall: float  # share of the true characters that are named


def overlap(named: Iterable[Span], truth: Span) -> Overlap:
    """Compare a set of spans, which may overlap each other, with one span of at least a character."""
    merged = merge(named)
    n_named = sum(span.stop - span.start for span in merged)
    n_true = truth.stop - truth.start
    n_both = sum(max(0, min(span.stop, truth.stop) - max(span.start, truth.start)) for span in merged)
    return Overlap(n_both / (n_named + n_true - n_both), n_both / n_named if n_named else 0.0, n_both / n_true)


def merge(spans: Iterable[Span]) -> list[Span]:
    """The same characters as spans that do not touch, in order."""
    merged: list[Span] = []
    for span in sorted(spans, key=lambda span: span.start):
        if merged and span.start <= merged[-1].stop:
            merged[-1] = Span(merged[-1].start, max(merged[-1].stop, span.stop))
        else:
            merged.append(span)
    return merged


DEPTH = 100  # hits with a breakdown; a host further down counts as one whose passage was not named


@dataclass(frozen=True, slots=True)
class Ranks:
    """Places of one host among all other documents, from 1; the last place where it has no score."""

    evidence: int
    document: int  # by the cosine of document vectors


@dataclass(frozen=True, slots=True)
class Named:
    """How well the breakdown, or the explanation of the model, names a planted passage."""

    is_first: bool  # the first pair is the planted section and the one that it was taken from
    spans: Overlap  # of the target passages of the first pair with the planted one; words name no passages


NOT_NAMED = Named(False, Overlap(0.0, 0.0, 0.0))


class Asker:
    """Searches one index, whose lists must be exact; holds its names and document vectors."""

    def __init__(self, index: Index, encoder: Encoder | None = None) -> None:
        """Read the document vectors; with `encoder`, that of the index, the explanation of the model is judged too."""
        self._index = index
        self._encoder = encoder if encoder is not None and encoder.cannot_explain is None else None
        self._document = DocumentCosine(index, "")

    def ranks(self, adoption: Adoption) -> Ranks:
        """The ranks of the host for its query."""
        n = self._index.n_documents
        by_evidence = [name for name, _ in self._index.rank_id(adoption.query, k=n)]
        by_document = [name for name, _ in self._document.search(self._index.document(adoption.query), n)]
        return Ranks(_rank(by_evidence, adoption.host, n - 1), _rank(by_document, adoption.host, n - 1))

    def named(self, adoption: Adoption, planted: Planted) -> tuple[Named, Named | None]:
        """How well the breakdown and an encoder that explains name the passage of a host among the `DEPTH` best."""
        result = self._index.search(adoption.query, Request(k=DEPTH, exact=True))
        found = [hit for hit in result.hits if hit.doc_id == adoption.host]
        nothing = None if self._encoder is None else NOT_NAMED
        if not found:
            return NOT_NAMED, nothing
        by_evidence = judge(found[0].breakdown, adoption.section, planted)
        if self._encoder is None:
            return by_evidence, None
        (model,) = self._encoder.explain(result.query, [found[0].document])
        return by_evidence, judge_model(model, adoption.section, planted)


def judge(breakdown: Breakdown, query_section: int, planted: Planted) -> Named:
    """Compare the first pair with the planted passage; a score without pairs names nothing."""
    if not breakdown.pairs:
        return NOT_NAMED
    first = breakdown.pairs[0]
    is_first = (first.query_section, first.target_section) == (query_section, planted.section)
    return Named(is_first, overlap((part.target for part in first.parts), planted.span))


def judge_model(model: ModelExplanation, query_section: int, planted: Planted) -> Named:
    """Compare the encoder's strongest section pair with the planted passage; without one above 0 nothing is named.

    As in a breakdown, its passages are the best chunk of the target section for each chunk of the query section.
    """
    strongest = strongest_pairs(model, 1)
    if not strongest:
        return NOT_NAMED
    first = strongest[0]
    mine = [at for at, chunk in enumerate(model.query_chunks) if chunk.section == first.query_section]
    theirs = [at for at, chunk in enumerate(model.target_chunks) if chunk.section == first.target_section]
    best = {theirs[at] for at in model.chunk_pairs[np.ix_(mine, theirs)].argmax(axis=1).tolist()}
    spans = (Span(model.target_chunks[at].start, model.target_chunks[at].stop) for at in sorted(best))
    is_first = (first.query_section, first.target_section) == (query_section, planted.section)
    return Named(is_first, overlap(spans, planted.span))


def _rank(names: list[str], name: str, last: int) -> int:
    return names.index(name) + 1 if name in names else last
