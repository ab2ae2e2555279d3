"""A document between its source and the corpus: title, headed sections, metadata. No source format is known here."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

_SPACE = re.compile(r"\s+")


@dataclass(frozen=True)
class ParsedDocument:
    """What a source file holds; its text is not masked yet."""

    title: str
    sections: Sequence[tuple[str, str]]  # heading and text, in their order
    meta: Mapping[str, object] = field(default_factory=dict)


class SectionBuilder:
    """Collects lines into paragraphs and paragraphs into sections, in the order of the source."""

    def __init__(self, heading: str = "") -> None:
        self._sections: list[tuple[str, list[str]]] = [(heading, [])]
        self._lines: list[str] = []
        self.is_skipping = False  # paragraphs of a dropped section are discarded

    def open(self, heading: str) -> None:
        """Start a section."""
        self.is_skipping = False
        self._sections.append((heading, []))

    def line(self, line: str) -> None:
        """Add a line to the current paragraph."""
        self._lines.append(line)

    def paragraph(self, text: str) -> None:
        """Add a whole paragraph to the current section, unless the section is dropped or the text is empty."""
        if text and not self.is_skipping:
            self._sections[-1][1].append(text)

    def take_lines(self) -> str:
        """Remove and return the lines of the current paragraph, joined by line breaks."""
        text = "\n".join(self._lines)
        self._lines.clear()
        return text

    def sections(self, min_words: int) -> tuple[tuple[str, str], ...]:
        """All sections whose text has at least `min_words` words; paragraphs are separated by a blank line."""
        joined = ((heading, "\n\n".join(paragraphs)) for heading, paragraphs in self._sections)
        return tuple((heading, text) for heading, text in joined if len(text.split()) >= min_words)


def one_line(text: str) -> str:
    """The text with each run of white space replaced by one blank."""
    return _SPACE.sub(" ", text).strip()
