"""Chooses which section of which document is planted into which other one, by words alone: no encoder has a say."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.datasets import DatasetError
from benchmarks.sections.planting import Passage
from engine.document import Document, Section
from engine.segmentation import sentence_starts

LENGTHS = ("short", "medium", "long")  # thirds of the hosts by their words
MIN_WORDS, MAX_WORDS = 60, 400  # of a planted section
MIN_SENTENCES = 3
MIN_RARE_WORDS = 5  # a section without words of its own is boilerplate, which matches everyone
RARE_SHARE = 0.02  # of the documents that hold a rare word, at most; two documents always may
_WORD = re.compile(r"[^\W\d_]{3,}")


@dataclass(frozen=True, slots=True)
class Adoption:
    """A section of a document, and the host that is to hold it."""

    query: str  # the document that the section is of, which is asked with
    section: int
    passage: Passage
    host: str
    length: str  # of the host, one of `LENGTHS`
    n_shared: int  # rare words that the whole query and the host have in common


def choose_adoptions(documents: Sequence[Document], n_per_length: int, seed: int) -> list[Adoption]:
    """Draw queries with a section of their own, and for each the host that shares least with it.

    A word is rare that at most 2 % of the documents hold, or two of them. A
    section can be planted if it has 60 to 400 words, three sentences, and five rare
    words; the first section, which holds the title, cannot. Of the hosts of a length
    each query gets the one with the fewest rare words in common. No document is a
    host or a query twice, or both.

    Args:
        documents: of a corpus or a part of it.
        n_per_length: how many hosts of each length.
        seed: of the draw.

    Raises:
        DatasetError: there are too few documents of that kind.
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
    """Words between white space."""
    return len(document.text.split())


def _rare_words(documents: Sequence[Document]) -> dict[str, frozenset[str]]:
    """The rare words of each document."""
    words = {document.doc_id: frozenset(_WORD.findall(document.text.lower())) for document in documents}
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
        and len(rare.intersection(_WORD.findall(text.lower()))) >= MIN_RARE_WORDS
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
