"""reStructuredText: parsed with docutils, written as readable text. No file is read or included, no code is run."""

from __future__ import annotations

import re

from docutils import nodes
from docutils.frontend import Values, get_default_settings
from docutils.parsers.rst import Parser
from docutils.utils import new_reporter

from engine.readers import text
from engine.readers.encoding import decode
from engine.readers.left_out import FIGURES
from engine.readers.rst_markup import lenient_directives, lenient_inliner
from engine.readers.rst_tree import NOT_XML, restore_initials, write_tree
from engine.readers.scalars import typed_scalar
from engine.text.blocks import Blocks
from engine.text.cleaning import one_line
from engine.text.document import Document, MetadataValue, assemble

_SILENT = 5  # above the severest level of docutils: nothing is printed, nothing ends the process
_AUTHORS = frozenset(["author", "authors"])
_MAX_PARSED_CHARS = 1_200_000  # docutils takes seconds and hundreds of megabytes for each million
_CONSTRUCT = re.compile(r"\n[ \t]*\n[ \t]*(?:\.\.|__|[-*+|:]|\w{1,4}[.)])")
_MAX_COPIED_LINES = 1_000_000_000  # docutils copies the rest of the lines for each list and directive
_MAX_VALUE_CHARS = 300  # a longer field is prose, not metadata


def read(data: bytes, doc_id: str, source: str) -> Document:
    """Read a reStructuredText document, with the directives and roles of Sphinx.

    Sections, lists, tables and literal blocks are kept, markup is removed. Directives and
    roles that docutils does not know keep their text. Metadata is a header of `Name: value`
    lines, or else the field list at the start of the document. The title is the field Title
    or Subject, or else the title of the first section. A file that docutils cannot parse, or
    cannot parse in reasonable time, is read as plain text.

    Raises:
        DocumentError: no text, too much, or not decodable.
    """
    markup = decode(data)
    header = text.header_fields(markup)
    tree = _parse(markup, has_header=bool(header))
    if tree is None:
        return text.read(data, doc_id, source)
    blocks = Blocks()
    write_tree(tree, blocks)
    fields = header or _fields(tree)
    title = fields.pop("title", "") or fields.pop("subject", "") or _title(tree)
    return assemble(
        blocks.text,
        blocks.headings,
        doc_id=doc_id,
        source=source,
        title=title,
        metadata=_metadata(fields),
        left_out={FIGURES: sum(1 for _ in tree.findall(nodes.image))},
    )


def _settings() -> Values:
    settings = get_default_settings(Parser)
    settings.report_level = settings.halt_level = _SILENT
    settings.warning_stream = False
    settings.file_insertion_enabled = settings.raw_enabled = False
    settings.syntax_highlight = "none"
    settings.smart_quotes = False
    return settings


def _parse(markup: str, *, has_header: bool) -> nodes.document | None:
    """The tree of a document; None where docutils cannot parse it, or would take too long."""
    if not _is_parseable(markup):
        return None
    settings = _settings()
    tree = _Tree(settings, new_reporter("document", settings), source="document")
    parser = Parser(rfc2822=has_header, inliner=lenient_inliner())
    try:
        with lenient_directives():
            parser.parse(markup, tree)
        restore_initials(tree)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - docutils raises what it likes, and plain text remains
        return None
    has_error = len(tree) == 1 and isinstance(tree[0], nodes.system_message)
    return None if has_error else tree


def _is_parseable(markup: str) -> bool:
    """Whether docutils can parse a text in reasonable time, and lxml can store the result."""
    if len(markup) > _MAX_PARSED_CHARS or NOT_XML.search(markup.translate({0x0B: " ", 0x0C: " "})):
        return False
    n_constructs = sum(1 for _ in _CONSTRUCT.finditer(markup))
    return n_constructs * markup.count("\n") <= _MAX_COPIED_LINES


class _Tree(nodes.document):  # type: ignore[misc]
    """A document without ids: nothing here follows a link, and docutils takes quadratic time for equal names."""

    def set_id(self, *_: object, **__: object) -> str:
        """Set no id."""
        return ""

    def note_implicit_target(self, *_: object) -> None:
        """Links need ids."""

    def note_explicit_target(self, *_: object) -> None:
        """Links need ids."""


def _title(tree: nodes.document) -> str:
    section = next((child for child in tree if isinstance(child, nodes.section)), None)
    return section[0].astext() if section is not None and len(section) else ""


def _fields(tree: nodes.document) -> dict[str, str]:
    """The field list before all text, or right below the title."""
    children = list(tree)
    first = next((child for child in children if not isinstance(child, nodes.Invisible)), None)
    if isinstance(first, nodes.section):
        first = next((child for child in first[1:] if not isinstance(child, nodes.Invisible)), None)
    if not isinstance(first, nodes.field_list):
        return {}
    return {field[0].astext().lower(): one_line(field[1].astext()) for field in first if isinstance(field, nodes.field)}


def _metadata(fields: dict[str, str]) -> dict[str, MetadataValue]:
    metadata: dict[str, MetadataValue] = {}
    for name, value in fields.items():
        if not value or len(value) > _MAX_VALUE_CHARS:
            continue
        if name in _AUTHORS:
            metadata["authors"] = [person for part in re.split(r"[;,]", value) if (person := part.strip())]
        else:
            metadata[name] = typed_scalar(value)
    return metadata
