"""Passages put into documents that do not hold them: copied, or damaged first. Pure functions of texts and seeds."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise

import numpy as np

from engine.document import Document, Section, Span
from engine.segmentation import sentence_starts

_WORD = re.compile(r"\S+\s*")
_GAP = "\n\n"


class Damage(StrEnum):
    """What is done to a passage before it is planted."""

    COPY = "copy"
    DROP_10 = "drop 10 %"
    DROP_30 = "drop 30 %"
    DROP_50 = "drop 50 %"
    SHUFFLE = "shuffle"


class Position(StrEnum):
    """Where in the host."""

    BEGINNING = "beginning"
    MIDDLE = "middle"
    END = "end"


class Form(StrEnum):
    """As what."""

    SECTION = "section"  # between two sections, with its own heading if it has one
    PASSAGE = "passage"  # inside a section of the host, without heading


@dataclass(frozen=True, slots=True)
class Passage:
    """A section of the document that is asked with."""

    heading: str
    text: str  # without the heading's line


@dataclass(frozen=True, slots=True)
class Planted:
    """A host with a passage in it."""

    document: Document
    span: Span  # of the passage in the text of the host, a heading of its own included
    section: int  # that holds it


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
    """The passage with its text damaged, and without its heading: whole, that would name it whatever the text is."""
    heading = passage.heading if damage is Damage.COPY else ""
    return replace(passage, heading=heading, text=_DAMAGES[damage](passage.text, rng))


def plant(host: Document, passage: Passage, position: Position, form: Form) -> Planted:
    """Put a passage into a host.

    As a section it stands before all sections, after all, or at the border of
    two that is nearest to the middle of the text; as a passage at the start, at the
    end, or at the start of a sentence nearest to the middle. Page numbers are dropped.

    Args:
        host: of two sections or more.
        passage: not empty.
        position: where.
        form: as what.
    """
    borders = [section.start for section in host.sections] if form is Form.SECTION else sentence_starts(host.text)
    at = _offset(host.text, borders, position)
    lead = _GAP if at and not host.text[:at].endswith(_GAP) else ""
    has_heading = form is Form.SECTION and passage.heading
    body = f"{passage.heading}{_GAP}{passage.text}" if has_heading else passage.text
    block = lead + body + _GAP
    sections = [section if section.start < at else _moved(section, len(block)) for section in host.sections]
    if form is Form.SECTION:
        number = sum(section.start < at for section in host.sections)
        path = (passage.heading,) if passage.heading else ()
        sections.insert(number, Section(passage.heading, path, at, at + len(block)))
    else:
        number = sum(section.start <= at for section in host.sections) - 1
        sections[number] = replace(host.sections[number], stop=host.sections[number].stop + len(block))
    document = replace(host, text=host.text[:at] + block + host.text[at:], sections=tuple(sections), pages=())
    return Planted(document, Span(at + len(lead), at + len(lead) + len(body)), number)


def _offset(text: str, borders: list[int], position: Position) -> int:
    if position is Position.MIDDLE:
        return min(borders[1:] or borders, key=lambda border: abs(border - len(text) // 2))
    return 0 if position is Position.BEGINNING else len(text)


def _moved(section: Section, by: int) -> Section:
    return replace(section, start=section.start + by, stop=section.stop + by)
