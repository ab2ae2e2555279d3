"""The place of a title in the text of a document, and how often its terms count there. Pure functions of texts.

A title states in a few words what a document is about; in a long text these are lost among thousands. So each
occurrence of a term in the title counts several times, such that the title adds `TITLE_SHARE` of the text's
occurrences. That is a mixture of the language models of text and title (Ogilvie & Callan 2003, SIGIR), in
whole numbers, so that counts stay counts. The length of the document does not change, so the terms of a text
have the same weight with and without a title: a document without a title has no advantage over those with one.

Only a title that is in the text counts more, since only there can it be shown. The name of a file, or a title
that is stored apart from the text, changes nothing.
"""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from engine.text.document import Document
from engine.text.spans import Span

TITLE_SHARE = 0.15  # share of all occurrences in a text that its title adds to the counts
FRONT_CHARS = 4_000  # first characters of a text, which are searched for its title
_MOST_WORDS = 100  # of a title; a longer one is a paragraph
_WORD = re.compile(r"\w+")
_SIGNS = r"(?:[^\w\n]|_)*"
_LINE_END = re.compile(f"{_SIGNS}$", re.MULTILINE)


def title_span(document: Document) -> Span | None:
    """The span of the title near the beginning of the text, as lines of its own; None if it is not there.

    Case, punctuation and line breaks may differ; "Title:" or "Subject:" may precede the title.
    """
    words = _WORD.findall(document.title)
    if not 0 < len(words) <= _MOST_WORDS:
        return None
    if document.text.startswith(document.title) and _LINE_END.match(document.text, len(document.title)):
        first = document.title.index(words[0])  # most readers begin the text with the title
        return Span(first, document.title.rindex(words[-1]) + len(words[-1]))
    title = r"[\W_]+".join(map(re.escape, words))
    line = rf"^(?:{_SIGNS}(?:title|subject) *:)?{_SIGNS}({title}){_SIGNS}$"
    found = re.search(line, document.text[:FRONT_CHARS], re.IGNORECASE | re.MULTILINE)
    return None if found is None else Span(*found.span(1))


def in_title(spans: NDArray[np.int64], title: Span) -> NDArray[np.bool_]:
    """Which of some spans (n, 2) are in the title, (n,)."""
    return (spans[:, 0] >= title.start) & (spans[:, 1] <= title.stop)


def repeats(spans: NDArray[np.int64], title: Span | None) -> NDArray[np.int64]:
    """How often each occurrence of a term counts (n,): once, or more often inside the title."""
    counts = np.ones(len(spans), np.int64)
    if title is not None:
        is_inside = in_title(spans, title)
        n_inside = max(1, int(np.count_nonzero(is_inside)))
        counts[is_inside] += round(TITLE_SHARE * len(spans) / n_inside)
    return counts
