"""The beginning of a document, for protocols that read no more than so many words."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import islice

from engine.document import Document

_WORD = re.compile(r"\S+")


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
