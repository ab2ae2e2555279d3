"""The novelty of the sections of a query: values. `engine.search.novelty` computes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import overload

from engine.result import Encoding, Hit, Provenance, Status
from engine.text.document import Document, section_label
from engine.text.section_kinds import SectionKind
from engine.text.spans import Coverage, Span

N_PAIRS = 3  # section pairs of each section that a report shows


@dataclass(frozen=True, slots=True, repr=False)
class SectionNovelty:
    """One section of a query, and the document that contains most of it."""

    query: Document
    section: int  # position in the query, from 0
    kind: SectionKind
    novelty: float | None  # 1 - the score of the hit, in [0, 1]; None where the section has nothing to compare
    hit: Hit | None  # rank 1 of the section; its parts are of this section alone. None where no document shares a word

    @property
    def heading(self) -> str:
        """The heading of the section, or its first words where it has none."""
        return section_label(self.query, self.section)

    @property
    def span(self) -> Span:
        """The span of the section in the text of the query."""
        section = self.query.sections[self.section]
        return Span(section.start, section.stop)

    def __repr__(self) -> str:
        novelty = "nothing to compare" if self.novelty is None else f"{self.novelty:.4f}"
        best = "" if self.hit is None else f", most is in {self.hit.doc_id!r}"
        return f"SectionNovelty({novelty}, {self.heading!r}{best})"


@dataclass(frozen=True, slots=True, repr=False)
class Novelty(Sequence[SectionNovelty]):
    """The sections of a query, from the most novel to the least; those with nothing to compare are last.

    Example:
        ```python
        for section in index.novelty("draft.pdf"):
            print(section.novelty, section.heading, section.hit)
        ```
    """

    query: Document
    query_coverage: Coverage
    sections: tuple[SectionNovelty, ...]
    status: Status  # of all hits: whether a document that contains more of some section can be missing
    n_searched: int  # documents that could have been found
    seconds: float  # of the search, without encoding
    language: str | None  # language of the word segmentation; None for an index without words
    reference: int  # version of the reference that scores were computed with
    encoding: Encoding | None = None  # None where all documents that could have been found have vectors
    provenance: Provenance | None = field(default=None, compare=False)
    copies: tuple[str, ...] = ()  # documents that were left out, as they have the content of the query

    def __len__(self) -> int:
        return len(self.sections)

    @overload
    def __getitem__(self, at: int) -> SectionNovelty: ...

    @overload
    def __getitem__(self, at: slice) -> tuple[SectionNovelty, ...]: ...

    def __getitem__(self, at: int | slice) -> SectionNovelty | tuple[SectionNovelty, ...]:
        return self.sections[at]

    def __repr__(self) -> str:
        return f"Novelty({self.query.title!r}, {len(self.sections)} sections, {self.status.value})"
