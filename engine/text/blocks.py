"""A text that grows block by block, for formats in which the file is not the text itself."""

from __future__ import annotations

from engine.text.cleaning import one_line
from engine.text.spans import Heading

MAX_HEADING_CHARS = 300  # a longer one is a paragraph that was styled as a heading


class Blocks:
    """Text that grows block by block, for formats in which the file is not the text itself."""

    def __init__(self) -> None:
        self.headings: list[Heading] = []
        self.pins: list[tuple[int, str]] = []  # as `Document.pins`
        self._parts: list[str] = []
        self._size = 0
        self._resumed: tuple[str, int] | None = None  # title and level of the section that the next block continues

    @property
    def text(self) -> str:
        """All blocks so far."""
        return "".join(self._parts)

    @property
    def size(self) -> int:
        """Characters so far; the next block starts after it and its separator."""
        return self._size

    def add(self, block: str, separator: str = "\n\n") -> int:
        """Append a block, unless it is blank; returns the offset at which it starts."""
        block = block.strip("\n")
        if not block.strip():
            return self._size
        if self._size:
            self._append(separator)
        start = self._size
        if self._resumed is not None and start:
            self.headings.append(Heading(*self._resumed, start))
        self._resumed = None
        self._append(block)
        return start

    def resume(self, title: str, level: int) -> None:
        """Let the next block, if no heading precedes it, belong to a section again; "" for one without a heading."""
        self._resumed = (title, level)

    def add_heading(self, title: str, level: int) -> None:
        """Append a heading line; a title over `MAX_HEADING_CHARS` is appended as a paragraph."""
        title = one_line(title)
        if not title:
            return
        self._resumed = None
        start = self.add(title)
        if len(title) <= MAX_HEADING_CHARS:
            self.headings.append(Heading(title, level, start))

    def _append(self, part: str) -> None:
        self._parts.append(part)
        self._size += len(part)
