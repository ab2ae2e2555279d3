"""The sentence of a passage that matches best, with the shared words marked. Strings and offsets only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from engine.result import Hit, Result, shown_spans
from engine.scoring.breakdown import SectionPair
from engine.text.document import Document
from engine.text.segmentation import sentence_starts
from engine.text.spans import Span
from engine.words.segmenter import segmenter_of

_LEAD = 24  # characters before the first marked word, where a sentence is too long to be shown whole


@dataclass(frozen=True, slots=True)
class Snippet:
    """A sentence on one line."""

    text: str
    marks: tuple[Span, ...]  # offsets in the line of the words that both passages have

    def marked(self, before: str = "*", after: str = "*") -> str:
        """The line with its shared words between two marks."""
        return self.joined(lambda text: text, before, after)

    def joined(self, escape: Callable[[str], str], before: str, after: str) -> str:
        """The line with its shared words between two marks, and every stretch of text escaped, for markup."""
        pieces, at = [], 0
        for mark in self.marks:
            pieces += [escape(self.text[at : mark.start]), before, escape(self.text[mark.start : mark.stop]), after]
            at = mark.stop
        return "".join([*pieces, escape(self.text[at:])])

    def cut(self, most: int) -> Snippet:
        """The line in at most `most` characters; a longer line begins shortly before its first marked word."""
        if len(self.text) <= most:
            return self
        first = self.marks[0].start if self.marks else 0
        start = 0 if first < most // 2 else self.text.rfind(" ", 0, max(1, first - _LEAD)) + 1
        lead = "…" if start else ""
        text = lead + self.text[start : start + most - 1 - len(lead)].rstrip() + "…"
        shift = len(lead) - start
        kept = [Span(mark.start + shift, mark.stop + shift) for mark in self.marks]
        return Snippet(text, tuple(mark for mark in kept if mark.start >= len(lead) and mark.stop < len(text)))


@dataclass(frozen=True, slots=True)
class Snippets:
    """Both sides of a section pair."""

    query: Snippet
    target: Snippet


def term_weights(hit: Hit, language: str | None) -> dict[int, float]:
    """The contribution of each word, by its hash, to the score of a hit; a pair of words counts for both words."""
    segmenter = segmenter_of(language or "none")
    weights: dict[int, float] = {}
    for part in hit.breakdown.terms:
        for word in segmenter.segment(part.term).words.tolist():
            weights[word] = weights.get(word, 0.0) + part.contribution
    return weights


def pair_snippets(result: Result, hit: Hit, pair: SectionPair, weights: Mapping[int, float]) -> Snippets:
    """The sentences behind a section pair: of its strongest passage, or of the sections if words contribute more.

    Args:
        result: of the search.
        hit: a hit of the result.
        pair: a section pair of the hit.
        weights: from `term_weights`.
    """
    query, target = result.query, hit.document
    mine, theirs = shown_spans(pair, query, target)
    language = result.language or "none"
    words = [
        set(segmenter_of(language).segment(document.text[span.start : span.stop]).words.tolist())
        for document, span in ((query, mine), (target, theirs))
    ]
    shared = {word: weights.get(word, 0.0) for word in words[0] & words[1]}
    return Snippets(
        best_sentence(query, mine, shared, language, pair.query_section),
        best_sentence(target, theirs, shared, language, pair.target_section),
    )


def best_sentence(document: Document, span: Span, weights: Mapping[int, float], language: str, section: int) -> Snippet:
    """The sentence of a span whose words weigh most, the first of equal ones, without the section's heading.

    Args:
        document: the document that contains the span.
        span: of a passage or a section.
        weights: by hash of a word; words without a weight are not marked.
        language: by which words are segmented.
        section: the number of the section.
    """
    start = after_heading(document, span, section)
    text = document.text[start : span.stop]
    found = segmenter_of(language).segment(text)
    starts = np.array(sentence_starts(text))
    at = np.searchsorted(starts, found.word_spans[:, 0], side="right") - 1
    value = np.zeros(len(starts))
    for sentence, word in {*zip(at.tolist(), found.words.tolist(), strict=True)}:
        value[sentence] += weights.get(word, 0.0)
    best = int(np.argmax(value))
    stop = int(starts[best + 1]) if best + 1 < len(starts) else len(text)
    marks = [
        Span(first, last)
        for (first, last), sentence, word in zip(found.word_spans.tolist(), at, found.words.tolist(), strict=True)
        if sentence == best and word in weights
    ]
    return _on_one_line(text, Span(int(starts[best]), stop), marks)


def _on_one_line(text: str, span: Span, marks: list[Span]) -> Snippet:
    line, moved = "", []
    at = span.start
    for mark in [*marks, Span(span.stop, span.stop)]:
        line = _append(line, text[at : mark.start])
        begin = len(line)
        line = _append(line, text[mark.start : mark.stop])
        moved.append(Span(begin, len(line)))
        at = mark.stop
    return Snippet(line.rstrip(), tuple(moved[:-1]))


def _append(line: str, text: str) -> str:
    """Append a text to a line, with each run of white space as one blank and none at the beginning."""
    joined = " ".join(text.split())
    lead = " " if text[:1].isspace() and line and not line.endswith(" ") else ""
    trail = " " if joined and text[-1:].isspace() else ""
    return line + lead + joined + trail


def after_heading(document: Document, span: Span, section: int) -> int:
    """Where the text of a span begins: after the heading of its section, if the span begins with the heading."""
    heading = document.sections[section].heading
    at = document.text.find(heading, span.start, span.stop) if heading else -1
    is_first = at >= 0 and not any(character.isalpha() for character in document.text[span.start : at])
    after = at + len(heading)
    while is_first and after < span.stop and document.text[after] in " #=-~*:\n":
        after += 1
    return after if is_first and after < span.stop else span.start
