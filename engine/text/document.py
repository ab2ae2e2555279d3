"""A document and its parts: text, headed sections, offsets. Frozen values; reads no file.

All offsets count characters of `Document.text`, the text that a reader returned,
so `document.text[start:stop]` is always exactly the text shown.
"""

from __future__ import annotations

import hashlib
import re
import textwrap
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib import import_module
from pathlib import PurePath
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from engine.errors import DocumentError
from engine.text.cleaning import check_text, clean, one_line, printable, regex
from engine.text.segmentation import Heading, Section, Span, divide

Scalar: TypeAlias = str | int | float | bool | None
MetadataValue: TypeAlias = Scalar | list[Scalar]
LEFT_OUT = "left_out_"  # metadata fields that count what a reader left out, as "left_out_figures"
SCANNED_PAGES = "scanned_pages"  # metadata field that lists the pages of a PDF that OCR may read
KIND = "kind."  # metadata fields that list the headings of sections of a kind, as "kind.claims"
_MADE_UP_TITLE = regex(
    r"(?:microsoft (?:word|powerpoint|excel) - .*|(?:word|latex) document|powerpoint presentation"
    r"|(?:untitled(?: document)?|unknown(?: title)?|\[(?:unknown|(?:document )?title)\]"
    r"|document|unbenannt|dokument|title|titel|no title"
    r"|unspecified|\(anonymous\)|slide|new page|index|new document|scanned document|(?:full page )?fax print"
    r"|no job name|layout|eur-lex - \S+ - [a-z]{2}|opmaak|mise en page|maquetaci.n|impaginato|google docs"
    r"|title of (?:the )?(?:paper|article)|(?:\S+ ){0,3}template(?: for \S+)?)[\s_-]*\d*"
    r"|(?:pii|doi)\s*:.*|\d+ \d+\.\.\d+|get a document - .*|.* - google docs|无标题文档|無題(?:の)?ドキュメント"
    r"|.*\.(?:do[ct][xm]?|tex|dvi|pdf|indd|qxd|rtf|ps|xml|x?html?|odt|wpd))$",
    re.IGNORECASE,
)
_TITLE_OF_PATENT = regex(r"(?:[(\[]54[)\]]\s*|[A-Z]{2}\d{6,}[A-Z]\d? - )(.+?)(?: - Google Patents)?$")
_PARAGRAPH = regex(r"^[ \t]*+(?:(\[0\d{3}\])|[{\[]?[ \t]*+(¶[ \t]?\d{1,4}))", re.MULTILINE)
_STAR_PAGE = regex(r"\[(\*\d{1,5})\]")
_TITLE_CHARS = 60  # most characters of a title that is the beginning of the text


Value = TypeVar("Value", bound="Deferred")


class Deferred:
    """Base of a frozen dataclass with slots whose fields can be computed on first access.

    Such a value has the same class as one whose fields were all given. It compares, prints,
    copies and pickles in the same way, and code that reads it sees no difference.
    """

    __slots__ = ("_make",)

    if not TYPE_CHECKING:  # a misspelt field stays an error to mypy

        def __getattr__(self, name: str) -> Any:  # noqa: ANN401
            # Python calls this only for attributes that are not set: a field still to be computed, or no field at all.
            make = _pending(self)
            if make is not None and name in type(self).__dataclass_fields__:
                for key, value in make().items():
                    object.__setattr__(self, key, value)
                with suppress(AttributeError):  # another thread made the same values meanwhile
                    object.__delattr__(self, "_make")
            return object.__getattribute__(self, name)


def deferred(kind: type[Value], make: Callable[[], Mapping[str, Any]], /, **given: object) -> Value:
    """Make a value whose remaining fields are computed when one of them is first read.

    Args:
        make: returns the remaining fields by name; it is released afterwards, with everything that it refers to.
    """
    value = object.__new__(kind)
    for key, given_value in given.items():
        object.__setattr__(value, key, given_value)
    object.__setattr__(value, "_make", make)
    return value


def _pending(value: Deferred) -> Callable[[], Mapping[str, Any]] | None:
    try:
        make: Callable[[], Mapping[str, Any]] = object.__getattribute__(value, "_make")
    except AttributeError:
        return None
    return make


@dataclass(frozen=True, slots=True)
class Document(Deferred):
    """A whole document, as it was read.

    A document from an index unpacks its text and sections when they are first
    accessed. `pages` holds the offset at which each page starts, for formats that have pages. `pins` holds numbers of
    paragraphs that the source has outside of the text, such as "[0041]", and where these paragraphs start; "" ends one.
    """

    doc_id: str
    title: str
    text: str = field(repr=False)
    sections: tuple[Section, ...] = field(repr=False)
    metadata: Mapping[str, MetadataValue] = field(default_factory=dict)
    source: str = ""  # where the document was read from, for display
    pages: tuple[int, ...] = field(default=(), repr=False)
    pins: tuple[tuple[int, str], ...] = field(default=(), repr=False)

    @classmethod
    def from_text(
        cls,
        text: str,
        *,
        title: str = "",
        metadata: Mapping[str, MetadataValue] | None = None,
        doc_id: str | None = None,
    ) -> Document:
        """Make a document from a text, which is read as a file of it: Markdown where it looks like it, or plain text.

        Args:
            text: the whole text; newlines become "\\n", characters that cannot be stored U+FFFD.
            title: by default that of the text, or its first words.
            metadata: comes before that of the text.
            doc_id: by default `text_id` of title and text, so that the same text always has the same doc_id.

        Raises:
            DocumentError: there is no text, or too much; or an argument has another type.
        """
        for name, value in (("text", text), ("title", title), ("doc_id", "" if doc_id is None else doc_id)):
            if not isinstance(value, str):
                raise DocumentError(f"{name} is {type(value).__name__}, not str; convert it: str({name})")
        text = clean(text)
        check_text(text)
        # Readers make documents, so this module does not import them.
        read: Document = import_module("engine.readers.reader").read_text(text)
        fields = {printable(key): _printable_value(value) for key, value in (metadata or {}).items()}
        return replace(
            read,
            doc_id=printable(text_id(title, text) if doc_id is None else doc_id),
            title=one_line(title) or read.title or text_title(read.text),
            metadata={**read.metadata, **fields},
        )

    @property
    def own_title(self) -> str:
        """The title; "" where it is only the doc_id, the name of the file or the first words of the text."""
        names = (self.doc_id, *(printable(stem(name)) for name in (self.doc_id, self.source)))
        is_cut = self.title.endswith("…") and self.title == text_title(self.text)
        return "" if self.title in names or is_cut else self.title

    @property
    def left_out(self) -> dict[str, int]:
        """The number of parts that the reader left out of the text, by kind ("figures"); see `engine.readers.left_out`.

        Counts are metadata, so that they are stored, shown and can be filtered by: `left_out_figures > 0`.
        """
        return {
            field.removeprefix(LEFT_OUT): value
            for field, value in self.metadata.items()
            if field.startswith(LEFT_OUT) and isinstance(value, int)
        }

    def page_numbers(self, span: Span) -> tuple[int, ...]:
        """The pages that a span of the text touches, counted from 1; empty for a format without pages."""
        if not self.pages:
            return ()
        first = bisect_right(self.pages, span.start)
        last = bisect_right(self.pages, max(span.start, span.stop - 1))
        return tuple(range(max(1, first), max(1, last) + 1))

    def pin(self, span: Span) -> str:
        """The paragraphs and star pages by which a span is cited, as "[0041]–[0043]" or "¶ 12, *5"; "" for none."""
        paragraphs, star_pages = _printed_pins(self.text)
        if not self.sections or not (self.pins or paragraphs or star_pages):
            return ""
        section = self.sections[max(0, bisect_right(self.sections, span.start, key=lambda one: one.start) - 1)]
        pins = _pins(self.pins or paragraphs, span, section.start), _pins(star_pages, span, 0)
        return ", ".join(filter(None, pins))


NO_NAME = "an empty name, as of an unset variable; name a file or folder"  # it is not the folder of the process


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A document that could not be read, and why; a bulk job records it and goes on."""

    source: str  # the file; with ":LINE" for a line of JSON lines
    reason: str  # for people; does not repeat the source
    doc_id: str = ""  # "" where it is not known
    n_scanned: int = 0  # pages of a document that OCR may read


def assemble(
    text: str,
    headings: Iterable[Heading],
    *,
    doc_id: str,
    source: str,
    title: str = "",
    metadata: Mapping[str, MetadataValue] | None = None,
    pages: tuple[int, ...] = (),
    left_out: Mapping[str, int] = MappingProxyType({}),
) -> Document:
    """Check a text and divide it at its headings.

    Args:
        text: as `Document.text` will be.
        headings: any order; offsets into `text`.
        doc_id: the corpus's own name of the document.
        pages: offset of each page.
        left_out: counts of what the reader left out of the text, by kind; added to the metadata where above 0.

    Raises:
        DocumentError: there is no text, or too much.
    """
    check_text(text)
    text = printable(text)
    if not text.strip():
        raise DocumentError("it holds no text")
    named = (replace(heading, title=one_line(heading.title)) for heading in headings)
    return Document(
        doc_id=printable(doc_id),
        title=_TITLE_OF_PATENT.sub(r"\1", one_line(title)) or printable(stem(source)),
        text=text,
        sections=divide(text, named),
        metadata={printable(key): _printable_value(value) for key, value in (metadata or {}).items()}
        | {f"{LEFT_OUT}{kind}": n_left_out for kind, n_left_out in left_out.items() if n_left_out > 0},
        source=printable(source),
        pages=pages,
    )


@lru_cache(maxsize=4)  # of texts: a query and a target alternate
def _printed_pins(text: str) -> tuple[tuple[tuple[int, str], ...], ...]:
    """The marks of paragraphs and of star pages in a text, with their places; most texts have none of their signs."""
    return tuple(
        tuple((match.start(), match[match.lastindex or 0]) for match in pattern.finditer(text))
        if any(sign in text for sign in signs)
        else ()
        for pattern, signs in ((_PARAGRAPH, ("[0", "¶")), (_STAR_PAGE, ("[*",)))
    )


def _pins(pins: Sequence[tuple[int, str]], span: Span, earliest: int) -> str:
    """The pin in which a span begins, unless it stands before `earliest`, and the one in which it ends."""
    first, last = (bisect_right(pins, place, key=lambda pin: pin[0]) for place in (span.start, span.stop - 1))
    begin = first - 1 if first and pins[first - 1][0] >= earliest else first
    names = [name for _, name in pins[begin:last] if name]
    return "–".join(dict.fromkeys((names[0], names[-1]))) if names else ""


def _printable_value(value: MetadataValue) -> MetadataValue:
    if isinstance(value, list):
        return [printable(item) if isinstance(item, str) else item for item in value]
    return printable(value) if isinstance(value, str) else value


def text_id(title: str, text: str) -> str:
    """A doc_id for a text that comes without one: the first 16 hexadecimal digits of a SHA-256."""
    encoded = f"{title}\0{text}".encode("utf-8", "replace")
    return f"text-{hashlib.sha256(encoded).hexdigest()[:16]}"


def text_title(text: str) -> str:
    """The first words of a text: its first line, cut between words at 60 characters."""
    line = " ".join(text.lstrip()[: 20 * _TITLE_CHARS].partition("\n")[0].split())
    if len(line) <= _TITLE_CHARS:
        return line
    cut = line.rfind(" ", _TITLE_CHARS // 2, _TITLE_CHARS)
    return line[: cut if cut > 0 else _TITLE_CHARS - 1] + "…"


def is_made_up_title(title: str) -> bool:
    """Whether a title in the properties of a file is empty, or was made by a program and not by the author."""
    return not title.strip() or _MADE_UP_TITLE.match(title.strip()) is not None


def stem(source: str) -> str:
    """The file name without folder, ".gz" and suffix; a number such as 2004.14974 has none."""
    name = PurePath(without_gz(PurePath(source).name))
    return name.name if name.suffix[1:2].isdigit() else name.stem


def without_gz(name: str) -> str:
    """A file name as it is after unpacking."""
    return name[:-3] if name.lower().endswith(".gz") else name


def section_labels(document: Document) -> list[str]:
    """The label of each section."""
    return [section_label(document, position) for position in range(len(document.sections))]


def section_label(document: Document, position: int) -> str:
    """The heading of a section, or its first words; with the number of the part if the section was split."""
    section = document.sections[position]
    name = section.heading or _opening(document, position)
    return f"{name} ({section.part}/{section.n_parts})" if section.n_parts > 1 else name


def _opening(document: Document, position: int) -> str:
    """The first words of a section without heading."""
    section = document.sections[position]
    words = " ".join(document.text[section.start : section.start + 200].split())
    opening = textwrap.shorten(words, 40, placeholder="…")
    return f"“{words[:20] + '…' if opening == '…' else opening}”"
