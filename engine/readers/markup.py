"""Parses XML without expanding or fetching anything, and writes an element tree as blocks by a `Grammar` of tags."""

from __future__ import annotations

import html
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from lxml import etree

from engine.errors import DocumentError
from engine.text.blocks import Blocks
from engine.text.cleaning import one_line

Element: TypeAlias = Any  # lxml is not typed
_MAX_TAGS = 2_000_000  # lxml needs some 200 bytes for an element, however short it is in the file
_BREAK = "\v"  # stands for a line break inside a block until the block is written


@dataclass(frozen=True, slots=True)
class HeadingMark:
    """The level and the number of a heading element."""

    level: int
    label: str = ""  # its number, where the format separates it from the text


@dataclass(frozen=True, slots=True)
class Grammar:
    """The meaning of the tags of a format; tags are local names, all others are inline."""

    blocks: frozenset[str]
    items: frozenset[str]  # of a list
    rows: frozenset[str]
    cells: frozenset[str]
    breaks: frozenset[str]
    verbatim: frozenset[str]  # white space is kept inside
    is_dropped: Callable[[Element], bool]
    heading: Callable[[Element], HeadingMark | None]


def local_name(element: Element) -> str:
    """The tag without its namespace."""
    tag: str = element.tag
    return tag.rpartition("}")[2]


def write(root: Element, grammar: Grammar, blocks: Blocks) -> None:
    """Append the text under `root` to `blocks`; trees can be deep: the walk is not recursive."""
    _Walk(grammar, blocks).through(root)


def words(element: Element | None) -> str:
    """All text under an element, on one line; "" for None."""
    return "" if element is None else one_line("".join(element.itertext(etree.Element)))


class _Walk:
    def __init__(self, grammar: Grammar, blocks: Blocks) -> None:
        self._grammar = grammar
        self._blocks = blocks
        self._buffer: list[str] = []
        self._prefix = ""
        self._separator = "\n\n"
        self._heading: HeadingMark | None = None
        self._row: Element | None = None
        self._verbatim = 0

    def through(self, root: Element) -> None:
        if self._grammar.is_dropped(root):
            return
        self._open(root)
        path = [(root, iter(root))]  # iterators, because a node can have millions of children
        while path:
            element, children = path[-1]
            node = next(children, None)
            if node is None:
                path.pop()
                self._close(element)
                node = element
            elif isinstance(node.tag, str) and not self._grammar.is_dropped(node):
                self._open(node)
                path.append((node, iter(node)))
                continue
            elif node.tag is etree.Entity:
                self._buffer.append(html.unescape(node.text))
            if node is not root and node.tail:
                self._buffer.append(node.tail)
        self._flush()

    def _open(self, node: Element) -> None:
        tag, grammar = local_name(node), self._grammar
        mark = grammar.heading(node) if self._heading is None else None
        if mark is not None:
            self._flush()
            self._heading = mark
        elif tag in grammar.breaks:
            self._buffer.append(_BREAK)
        elif tag in grammar.cells:
            self._start_cell()
        elif tag in grammar.items:
            self._start(prefix="- ")
        elif tag in grammar.rows:
            self._start()
            # A row that holds headings or tables lays out a page: its parts stay blocks.
            self._row = self._row if self._row is not None else node if _is_simple(node, grammar) else None
        elif tag in grammar.blocks or tag in grammar.verbatim:
            self._border()
            self._verbatim += tag in grammar.verbatim
        if node.text:
            self._buffer.append(node.text)

    def _close(self, node: Element) -> None:
        tag, grammar = local_name(node), self._grammar
        if self._heading is not None:
            if grammar.heading(node) is not None:
                self._end_heading()
            elif tag in grammar.blocks:
                self._border()
        elif node is self._row:
            self._flush()
            self._row = None
        elif tag in grammar.blocks or tag in grammar.items or tag in grammar.verbatim:
            self._border()
            self._verbatim -= tag in grammar.verbatim
            if tag in grammar.items:
                self._prefix = ""

    def _start(self, prefix: str = "") -> None:
        """Start an item or a row: on a line of its own, close to the one before."""
        self._border()
        if self._row is None and self._heading is None:
            self._prefix, self._separator = prefix, "\n"

    def _start_cell(self) -> None:
        """Separate a cell from the cell before; blank cells at the start of a row are left out."""
        if self._row is None:
            self._buffer.append(" ")
        elif any(not part.isspace() for part in reversed(self._buffer) if part):
            self._buffer.append(" | ")
        else:
            self._buffer = []

    def _border(self) -> None:
        """A block starts or ends here; inside a row or a heading a space replaces the border."""
        if self._row is None and self._heading is None:
            self._flush()
        elif self._buffer and self._buffer[-1] != " ":
            self._buffer.append(" ")

    def _end_heading(self) -> None:
        if self._heading is not None:
            title = f"{self._heading.label} {''.join(self._buffer)}".replace(_BREAK, " ")
            self._blocks.add_heading(title, self._heading.level)
        self._buffer, self._heading, self._separator, self._prefix = [], None, "\n\n", ""

    def _flush(self) -> None:
        text = "".join(self._buffer)
        self._buffer = []
        if not self._verbatim:
            text = "\n".join(one_line(line) for line in text.split(_BREAK)).strip()
        if text.strip():
            self._blocks.add(self._prefix + text.rstrip(), self._separator)
            self._prefix, self._separator = "", "\n\n"


def _is_simple(row: Element, grammar: Grammar) -> bool:
    nested = (node for node in row.iterdescendants(etree.Element))
    return not any(local_name(node) in grammar.rows or grammar.heading(node) is not None for node in nested)


def parse_safely(data: bytes) -> Element:
    """The root element of an XML document.

    Raises:
        DocumentError: not well-formed, or over `_MAX_TAGS`.
    """
    check_tags(data.count(b"<"))
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True, remove_pis=True, huge_tree=False
    )
    try:
        return etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        raise DocumentError(f"it is not well-formed XML: {one_line(error.msg)}") from error


def check_tags(n_tags: int) -> None:
    """Refuse more start and end tags than fit into reasonable memory.

    Raises:
        DocumentError: there are more than `_MAX_TAGS`.
    """
    if n_tags > _MAX_TAGS:
        raise DocumentError(f"it has {n_tags:,} tags, the limit is {_MAX_TAGS:,}; convert it to plain text")
