"""Parts of a document, for protocols that read or ask with no more than that."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import islice

from engine.document import Document
from engine.segmentation import divide

WHOLE = "whole"
LEAD_WORDS = 200  # about an abstract
PARTS = (WHOLE, "title", "lead")
_WORD = re.compile(r"\S+")


def part_of(document: Document, part: str) -> Document:
    """A query of a part of a document: its title, its first `LEAD_WORDS` words, or the whole.

    A document without a title is searched with its first ten words.
    """
    if part == WHOLE:
        return document
    if part == "lead":
        return first_words(document, LEAD_WORDS)
    text = document.title.strip() or first_words(document, 10).text
    return replace(document, text=text, sections=divide(text), pages=())


def first_words(document: Document, n_words: int) -> Document:
    """The document up to the end of its n-th word, `n_words` at least 1; itself where it is not longer.

    A word is a run of characters that are not space. Sections that begin later are
    dropped, and the one in which the cut falls ends there.
    """
    last = next(islice(_WORD.finditer(document.text), n_words - 1, None), None)
    if last is None or not document.text[last.end() :].strip():
        return document
    stop = last.end()
    sections = tuple(
        replace(section, stop=min(section.stop, stop)) for section in document.sections if section.start < stop
    )
    pages = tuple(page for page in document.pages if page < stop)
    return replace(document, text=document.text[:stop], sections=sections, pages=pages)
