"""A text that grows block by block, for formats in which the file is not the text itself, and the account of it.

A reader that knows its source as text reports all of it with `expect`, and with `skip` what it leaves out or writes in
another form. Words that are then neither in the document nor skipped were lost without a reason: a fault of the reader.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from engine.errors import DocumentError
from engine.readers import left_out as reasons
from engine.readers.fields import case_fields, case_name
from engine.text.cleaning import one_line, without_encoded, without_invisible
from engine.text.document import Document, MetadataValue, Unreadable, assemble
from engine.text.headings import is_part_of_opinion
from engine.text.segmentation import Heading

MAX_HEADING_CHARS = 300  # a longer one is a paragraph that was styled as a heading
_BLANKS = bytes(byte if byte > 127 or chr(byte).isalnum() else 32 for byte in range(256))
_SIGNS = "¬\u2010\u2011\u2013\u2014\u2018\u2019\u201c\u201d\u2026"  # the commonest ones beyond ASCII
_LEAST_BYTES = 3  # of a word; shorter ones are marks, numbers and parts of formulas
_LEAST_SEARCHED = 2_000  # words that are searched for inside of others
_MOST_SEARCHED_BYTES = 2_000_000_000  # in all of these searches


class Blocks:
    """Text that grows block by block, and counts of what is left out."""

    def __init__(self) -> None:
        self.headings: list[Heading] = []
        self.left_out: Counter[str] = Counter()
        self.opening = ""  # a line above the text that can be the title, where the source has no other
        self.pins: list[tuple[int, str]] = []  # as `Document.pins`
        self.pages: list[int] = []  # where each begins, where the source has some
        self._parts: list[str] = []
        self._size = 0
        self._resumed: tuple[str, int] | None = None  # title and level of the section that the next block continues
        self._source: list[str] = []
        self._skipped: list[str] = []
        self._fields: list[str] = []

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
        whole, (block, n_encoded) = block, without_encoded(block)
        if n_encoded:
            self.left_out[reasons.ENCODED] += n_encoded
            self.skip(whole)
        block = without_invisible(block).replace("\u00ad", "").strip("\n")
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
        title = one_line(without_invisible(title))
        if not title:
            return
        self._resumed = None
        start = self.add(title)
        if len(title) <= MAX_HEADING_CHARS:
            self.headings.append(Heading(title, level, start))

    def start_page(self) -> None:
        """Let the next block begin a page."""
        self.pages.append(self._size + 2 if self._size else 0)

    def expect(self, text: str) -> None:
        """Note text of the source, taken independently of what is added."""
        self._source.append(text)

    def skip(self, text: str) -> None:
        """Note text of the source that is left out for a reason, or that is added in another form."""
        self._skipped.append(text)

    def describe(self, text: str) -> None:
        """Note text of the source that becomes metadata; what the metadata do not show of it counts as front matter."""
        self._fields.append(text)

    def document(
        self, doc_id: str, source: str, title: str, metadata: Mapping[str, MetadataValue], pages: tuple[int, ...] = ()
    ) -> Document:
        """The document of all blocks; without a title, that of a court paper or the opening.

        Raises:
            DocumentError: there is no text, or too much.
        """
        text = self.text
        if (not title or is_part_of_opinion(title)) and (case := case_name(text)):
            metadata = case_fields(text) | {**metadata}
            title = case
        title = title or self.opening
        if self._source:
            dates = [str(metadata.get(name, "")).replace("-", "") for name in ("date", "filed", "priority_date")]
            shown = [title, *map(str, metadata.values()), *dates]
            self.left_out[reasons.FRONT_MATTER] += n_lost(shown, self._fields)
            accounted = [text, *(self._fields or shown), *self._skipped]
            self.left_out[reasons.UNEXPLAINED] = n_lost(accounted, self._source)
        document = assemble(
            text,
            self.headings,
            doc_id=doc_id,
            source=source,
            title=title,
            metadata=metadata,
            pages=pages or tuple(self.pages),
            left_out=self.left_out,
        )
        return replace(document, pins=tuple(self.pins)) if self.pins else document

    def _append(self, part: str) -> None:
        self._parts.append(part)
        self._size += len(part)


def several(
    readers: Iterable[Callable[[], Document]], doc_id: str, source: str, own_ids: Sequence[str]
) -> Iterator[Document | Unreadable]:
    """The documents of a file, named by the first of the fields that they have and no other has, else by places."""
    seen: set[str] = set()
    for number, read in enumerate(readers, 1):
        try:
            document = read()
        except DocumentError as error:
            yield Unreadable(f"{source}:{number}", str(error), f"{doc_id}#{number}")
            continue
        own = next((str(value) for field in own_ids if (value := document.metadata.get(field))), "")
        name = own if own and own not in seen else str(number)
        seen.add(name)
        yield replace(document, doc_id=f"{doc_id}#{name}")


def n_lost(accounted: list[str], *sources: list[str]) -> int:
    """The number of words of each source that are not accounted for; a word can be a part of another word there."""
    whole = _as_words(accounted) if sources else b""
    known = Counter(whole.split())
    each = b" ".join(known)  # searched faster than all words, where once is enough

    def n_inside(word: bytes, n: int) -> int:
        return whole.count(word) if word in each and n > 1 else word in each

    n_words, most = 0, max(_LEAST_SEARCHED, _MOST_SEARCHED_BYTES // (len(whole) + 1))
    for source in sources:
        expected = Counter(_as_words(source).split())
        missing = [(word, n) for word, n in expected.items() if n > known[word] and len(word) >= _LEAST_BYTES]
        n_words += sum(min(n - known[word], max(0, n - n_inside(word, n))) for word, n in missing[:most])
        n_words += sum(n - known[word] for word, n in missing[most:])
    return n_words


def _as_words(texts: list[str]) -> bytes:
    """Texts with blanks for punctuation; bytes, because these are much faster to divide than characters."""
    text = without_invisible(" ".join(texts)).replace("\u00ad", "")
    text = text if text.isascii() else " ".join(text.split())
    for sign in "" if text.isascii() else _SIGNS:
        text = text.replace(sign, " ")
    return text.encode("utf-8", "replace").translate(_BLANKS)
