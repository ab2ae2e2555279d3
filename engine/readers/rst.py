"""reStructuredText: its markup, and the text without comments and directives that have none."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from docutils import nodes
from docutils.frontend import get_default_settings
from docutils.parsers.rst import Directive, Parser, directives, roles
from docutils.parsers.rst.directives.tables import CSVTable
from docutils.parsers.rst.states import Inliner
from docutils.utils import new_reporter, unescape
from lxml import etree

from engine.readers import left_out as reasons
from engine.readers import text
from engine.readers.blocks import Blocks
from engine.readers.encoding import decode
from engine.readers.markup import Element, Grammar, HeadingMark, form_of, tex_text, write
from engine.text.cleaning import joined_words, one_line, without_encoded, without_gaps, without_readings
from engine.text.document import Document, assemble
from engine.text.headings import numeral

_LITERAL = frozenset([
    "asciinema", "code", "code-block", "digraph", "doctest", "graph", "graphviz", "inheritance-diagram",
    "ipython", "jupyter-execute", "mermaid", "parsed-code", "plantuml", "plot", "productionlist", "prompt",
    "sourcecode", "testcode", "testoutput", "tikz", "uml",
])  # fmt: skip
_WITHOUT_TEXT = frozenset([
    "contents", "currentmodule", "date", "default-domain", "default-role", "footer", "header", "highlight",
    "highlightlang", "index", "meta", "role", "sectnum", "tabularcolumns",
    "target-notes", "testcleanup", "testsetup", "title", "todolist",
])  # fmt: skip
# The argument of these directives is for programs; their body is text.
_FOR_PROGRAMS = frozenset(["cssclass", "ifconfig", "only", "rst-class"])
OTHER_FILE = "longmatch-file"  # the format of a `raw` node
_OPTION = re.compile(r"\s*:[A-Za-z][\w .-]*:(?:\s|$)")
_CAPTION = re.compile(r"\s*:caption:\s+(\S.*)")
_TITLED = re.compile(r"(\S.*?)(?<!\s)\s++<[^<>]*>", re.DOTALL)
_MARK = re.compile(r"[*`|_]")
_MAX_INLINE_WORK = 1_000_000  # characters times marks: docutils searches a whole paragraph for the end of each mark
_LOCK = threading.RLock()

_Parsed: TypeAlias = tuple[list[Any], list[Any]]  # nodes and messages


def _lenient_inliner() -> Inliner:
    """The inline parser of docutils; a role that docutils does not know is replaced by its text.

    A huge paragraph with many marks is not parsed, and keeps its marks.
    """
    # docutils builds its patterns from the attributes of the class itself, so a subclass would have none.
    inliner = Inliner()
    parse, interpreted = inliner.parse, inliner.interpreted

    def parse_short(text: str, lineno: int, memo: Any, parent: Any) -> _Parsed:  # noqa: ANN401
        if len(text) * len(_MARK.findall(text)) > _MAX_INLINE_WORK:
            return [nodes.Text(unescape(text, restore_backslashes=True))], []
        parsed: _Parsed = parse(text, lineno, memo, parent)
        return parsed

    def interpret(rawsource: str, content: str, role: str, lineno: int) -> _Parsed:
        found, _ = roles.role(role, inliner.language, lineno, inliner.reporter)
        if found is None:
            return [nodes.inline(rawsource, _role_text(unescape(content)), classes=[role])], []
        parsed: _Parsed = interpreted(rawsource, content, role, lineno)
        return parsed

    inliner.parse, inliner.interpreted = parse_short, interpret
    return inliner


def _role_text(content: str) -> str:
    """The words that Sphinx shows for a role: "title" of `title <target>`, "c" of `~a.b.c`."""
    titled = _TITLED.fullmatch(content)
    if titled is not None:
        return titled.group(1)
    if content.startswith("~"):
        return content[1:].rpartition(".")[2]
    return content.removeprefix("!")


@contextmanager
def _lenient_directives() -> Iterator[None]:
    """Give docutils a directive for every name until the context ends; one thread at a time."""
    with _LOCK:
        original = directives.directive

        def lookup(name: str, language: Any, document: Any) -> tuple[Any, list[Any]]:  # noqa: ANN401
            known = _KNOWN.get(_local(name))
            if known is not None:
                return known, []
            found, messages = original(name, language, document)
            if not isinstance(found, type):
                return _UNKNOWN, messages
            options = _AnyOption(getattr(found, "option_spec", None) or {})
            return type(found.__name__, (found,), {"option_spec": options}), messages

        directives.directive = lookup
        try:
            yield
        finally:
            directives.directive = original


class _AnyOption(dict[str, Any]):
    """The options of a directive; one that docutils does not know has any value."""

    def __missing__(self, name: str) -> Any:  # noqa: ANN401
        return directives.unchanged


def _local(name: str) -> str:
    """The name of a directive without its domain: "function" of "py:function"."""
    return name.lower().rpartition(":")[2]


class _Body(Directive):  # type: ignore[misc]
    """A directive that accepts any text, which is divided here, and shows none: it is for programs."""

    has_content = True
    has_short_argument = False  # one line; else up to a blank line

    def run(self) -> list[Any]:
        """The nodes that take the place of the directive."""
        first, _, rest = self.block_text.partition("\n")
        argument: list[str] = []
        options: list[str] = []
        if first.rpartition("::")[2].strip():
            while self.content and self.content[0].strip() and not _OPTION.match(self.content[0]):
                argument.append(self._take())
                if self.has_short_argument:
                    break
        if argument or rest.partition("\n")[0].strip():
            while self.content and _OPTION.match(self.content[0]):
                options.append(self._take())
        return self.nodes(" ".join(argument), options)

    def nodes(self, argument: str, options: list[str]) -> list[Any]:
        """The nodes that `run` returns; the body is left in `content`."""
        return []

    def _take(self) -> str:
        line = str(self.content[0])
        self.content.trim_start()
        self.content_offset += 1
        return line


def _directive(
    nodes_of: Callable[[_Body, str, list[str]], list[Any]], *, has_short_argument: bool = False
) -> type[Directive]:
    """A directive for which nodes stand that are made of the directive, its argument and its options."""
    return type("Known", (_Body,), {"nodes": nodes_of, "has_short_argument": has_short_argument})


def _literal(own: _Body, _: str, options: list[str]) -> list[Any]:
    """A body that is not reStructuredText; the argument is a language or a file."""
    code = "\n".join(own.content).strip("\n")
    return [*_captions(options), *([nodes.literal_block(code, code)] if code else [])]


def _titles(own: _Body, _: str, options: list[str]) -> list[Any]:
    """The titles that are written out in a list of other files; file names are left out."""
    titles = [match.group(1) for line in own.content if (match := _TITLED.fullmatch(line.strip()))]
    return [*_captions(options), *(nodes.paragraph(title, title) for title in titles)]


def _captions(options: list[str]) -> list[Any]:
    matches = (_CAPTION.fullmatch(line) for line in options)
    return [nodes.paragraph(match.group(1), match.group(1)) for match in matches if match]


class _Csv(CSVTable):  # type: ignore[misc]
    """A table whose rows may be in another file, which is counted."""

    option_spec = _AnyOption(CSVTable.option_spec)

    def run(self) -> list[Any]:
        """The nodes that take the place of the directive."""
        if self.options.keys().isdisjoint(("file", "url")):
            rows: list[Any] = super().run()
            return rows
        return [*(nodes.paragraph(title, title) for title in self.arguments), nodes.raw(format=OTHER_FILE)]


def _parsed(own: _Body, argument: str, _: list[str]) -> list[Any]:
    """The argument as a paragraph, and the body, parsed like the rest of the document."""
    found: list[Any] = []
    if argument and _local(own.name) not in _FOR_PROGRAMS:
        inline, _ = own.state.inline_text(argument, own.lineno)
        found.append(nodes.paragraph(argument, "", *inline))
    container = nodes.container()
    own.state.nested_parse(own.content, own.content_offset, container)
    return [*found, container]


_UNKNOWN = _directive(_parsed)
_KNOWN: dict[str, type[Directive]] = {
    **dict.fromkeys(_LITERAL, _directive(_literal, has_short_argument=True)),
    **dict.fromkeys(_WITHOUT_TEXT, _Body),
    "raw": _directive(
        lambda own, name, _: [nodes.raw("", "\n".join(own.content), format=name)], has_short_argument=True
    ),
    **dict.fromkeys(
        ["sectionauthor", "codeauthor", "moduleauthor"], _directive(lambda _, name, __: [nodes.author(name, name)])
    ),
    "csv-table": _Csv,
    **dict.fromkeys(["include", "literalinclude"], _directive(lambda *_: [nodes.raw(format=OTHER_FILE)])),
    "class": _UNKNOWN,  # in Sphinx it describes a class; docutils would drop the argument
    "toctree": _directive(_titles),
}


_STRUCK = frozenset(["del", "deleted", "s", "strike", "strikethrough", "struck", "line-through"])  # roles
_SILENT = 5  # above the severest level of docutils: nothing is printed, nothing ends the process
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
    """
    markup, n_encoded = without_encoded(decode(data))
    markup, n_readings = without_readings(joined_words(without_gaps(markup)))
    header = text.header_fields(markup)
    tree = _parse(markup, has_header=bool(header))
    if tree is None:
        return text.read_plain(markup, n_encoded, doc_id, source)
    blocks = Blocks()
    write(_Conversion(tree).root, _GRAMMAR, blocks)
    fields = header or _fields(tree)
    named = "; ".join(author.astext() for author in tree.findall(nodes.author))
    fields |= {"authors": named} if named and fields.keys().isdisjoint(text.AUTHORS) else {}
    sections = [child[0].astext() for child in tree if isinstance(child, nodes.section) and len(child)] or [""]
    title = fields.pop("title", "") or fields.pop("subject", "") or sections[0]
    return assemble(
        blocks.text,
        blocks.headings,
        doc_id=doc_id,
        source=source,
        title=title,
        metadata=text.metadata_of(
            {name: value for name, value in fields.items() if value and len(value) <= _MAX_VALUE_CHARS}
        ),
        left_out={
            reasons.FIGURES: sum(1 for _ in tree.findall(nodes.image)),
            reasons.ENCODED: n_encoded,
            reasons.READINGS: n_readings,
            reasons.FILES: sum(raw.get("format") == OTHER_FILE for raw in tree.findall(nodes.raw)),
            reasons.COMMENT_WORDS: sum(len(comment.astext().split()) for comment in tree.findall(nodes.comment)),
            reasons.DELETED: sum(len(words.astext().split()) for words in tree.findall(_is_struck)),
            reasons.RAW: sum(len(raw.astext().split()) for raw in tree.findall(nodes.raw)),
        },
    )


def _is_struck(node: nodes.Node) -> bool:
    return isinstance(node, nodes.inline) and not _STRUCK.isdisjoint(node.get("classes", ()))


def _parse(markup: str, *, has_header: bool) -> nodes.document | None:
    """The tree of a document; None where docutils cannot parse it, or would take too long."""
    if not _is_parseable(markup):
        return None
    settings = get_default_settings(Parser)
    settings.report_level = settings.halt_level = _SILENT
    settings.warning_stream = settings.file_insertion_enabled = settings.raw_enabled = settings.smart_quotes = False
    settings.syntax_highlight = "none"
    tree = _Tree(settings, new_reporter("document", settings), source="document")
    parser = Parser(rfc2822=has_header, inliner=_lenient_inliner())
    try:
        with _lenient_directives():
            parser.parse(markup, tree)
        _restore_initials(tree)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - docutils raises what it likes, and plain text remains
        return None
    has_error = len(tree) == 1 and isinstance(tree[0], nodes.system_message)
    return None if has_error else tree


def _is_parseable(markup: str) -> bool:
    """Whether docutils can parse a text in reasonable time, and lxml can store the result."""
    if len(markup) > _MAX_PARSED_CHARS or _NOT_XML.search(markup.translate({0x0B: " ", 0x0C: " "})):
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

    note_explicit_target = note_implicit_target


def _fields(tree: nodes.document) -> dict[str, str]:
    """The field list before all text, or right below the title."""
    first: nodes.Node | None = tree
    while isinstance(first, nodes.document | nodes.section):
        first = next((child for child in first if not isinstance(child, nodes.Invisible | nodes.title)), None)
    if not isinstance(first, nodes.field_list):
        return {}
    fields: dict[str, str] = {}
    for field in first:
        if isinstance(field, nodes.field):
            name, value = field[0].astext().lower(), one_line(field[1].astext())
            if name in text.AUTHORS:
                value = "; ".join(one_line(one.astext()) for one in field[1].findall(nodes.paragraph))
            fields[name] = f"{fields[name]}; {value}" if fields.get(name) and name in text.AUTHORS else value
    return fields


_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_DROPPED = (
    nodes.author, nodes.colspec, nodes.comment, nodes.decoration, nodes.image, nodes.meta, nodes.pending, nodes.raw,
    nodes.substitution_definition,
)  # fmt: skip
_LEAVES: dict[type[nodes.Node], Callable[[str], str]] = {  # and how their words are written
    **dict.fromkeys([nodes.Text, nodes.substitution_reference, nodes.option_group], str),
    **dict.fromkeys([nodes.footnote_reference, nodes.citation_reference, nodes.label], "[{}]".format),
    nodes.field_name: "{}: ".format, nodes.classifier: " : {}".format, nodes.math: tex_text,
}  # fmt: skip
_PAIRS = (nodes.field, nodes.footnote, nodes.citation, nodes.option_list_item)  # a name and its description
_MAX_DEPTH = 5  # of substitutions inside substitutions


def _restore_initials(tree: nodes.document) -> None:
    """Undo lists of one numbered item: "A. Lee" is a name and "1. Aim" a heading that was not underlined."""
    for numbered in list(tree.findall(nodes.enumerated_list)):
        item = numbered[0] if len(numbered) == 1 else None
        if isinstance(item, nodes.list_item) and item.children and isinstance(item[0], nodes.paragraph):
            item[0].insert(0, nodes.Text(_enumerator(numbered)))
            numbered.replace_self(item.children)


def _enumerator(numbered: nodes.enumerated_list) -> str:
    """The number of the first item, as it was written."""
    number = numeral(numbered.get("start", 1), form_of(numbered.get("enumtype", ""))[:1] or "1")
    return f"{numbered.get('prefix', '')}{number}{numbered.get('suffix', '')} "


class _Conversion:
    """An lxml tree of the parts that are text, as input of `markup.write`.

    Substitutions can add about as many characters as the document has without them;
    after that, references are written as their names.
    """

    def __init__(self, tree: nodes.document) -> None:
        self.root = etree.Element("document")
        self._tree = tree
        self._left = sum(len(text) for text in tree.findall(nodes.Text))
        todo: list[tuple[nodes.Node, Element, int]] = [(child, self.root, 0) for child in reversed(tree)]
        while todo:
            node, parent, depth = todo.pop()
            if isinstance(node, _DROPPED) or _is_struck(node):
                continue
            if type(node) in _LEAVES:
                if isinstance(node, nodes.classifier) and len(parent):
                    parent = parent[-1]  # the term before it
                etree.SubElement(parent, "inline").text = _NOT_XML.sub("\ufffd", self._words(node))
                continue
            element = etree.SubElement(parent, _tag(node))
            if isinstance(node, nodes.math_block):
                element.text = _NOT_XML.sub("\ufffd", tex_text(node.astext()))
                continue
            if isinstance(node, nodes.enumerated_list):
                number = form_of(node.get("enumtype", ""))[:1] or "1"
                element.set("form", f"{node.get('prefix', '')}{number}{node.get('suffix', '.')}")
                element.set("start", str(node.get("start", 1)))
            if isinstance(node, nodes.section):
                depth += 1
            elif element.tag == "heading":
                element.set("level", str(depth))
            children = node.children
            if isinstance(node, nodes.system_message):  # markup that docutils could not parse
                lost = (child for child in children if isinstance(child, nodes.literal_block) and node["level"] > 2)
                children = [child for child in lost if not child.astext().startswith(".. |")]
            todo.extend((child, element, depth) for child in reversed(children))

    def _words(self, leaf: nodes.Node) -> str:
        if isinstance(leaf, nodes.substitution_reference):
            return self._substituted(leaf)
        if isinstance(leaf, nodes.option_group):
            return f"{', '.join(option.astext() for option in leaf)}  "
        words: str = leaf.astext()
        return _LEAVES[type(leaf)](words) if words else ""

    def _substituted(self, reference: nodes.substitution_reference) -> str:
        """The text of a substitution, or its name where it has no definition or exceeds a limit."""
        parts: list[str] = []
        todo: list[tuple[nodes.Node, int]] = [(reference, 0)]
        while todo:
            node, depth = todo.pop()
            if isinstance(node, nodes.substitution_reference):
                definition = self._definition(node) if depth < _MAX_DEPTH else None
                if definition is None or self._left <= 0:
                    parts.append(node.astext())
                else:
                    self._left -= 1
                    todo.extend((child, depth + 1) for child in reversed(definition.children))
            elif isinstance(node, nodes.Text):
                parts.append(node.astext())
                self._left -= len(parts[-1])
            elif isinstance(node, nodes.image):
                parts.append(node.get("alt", ""))
            else:
                todo.extend((child, depth) for child in reversed(node.children))
        return "".join(parts)

    def _definition(self, reference: nodes.substitution_reference) -> nodes.Node | None:
        """The definition of a name: an exact match, or else a match in any letter case."""
        name = reference.get("refname", "")
        known = self._tree.substitution_defs
        return known.get(name) or known.get(self._tree.substitution_names.get(name.lower(), ""))


def _tag(node: nodes.Node) -> str:
    """The tag in `_GRAMMAR`: that of docutils, except for headings and for pairs short enough for one line."""
    if isinstance(node, nodes.title):
        return "heading" if isinstance(node.parent, nodes.section) else "block"
    if isinstance(node, _PAIRS) and len(node) == 2:
        paragraphs = [node[1]] if isinstance(node[1], nodes.paragraph) else node[1].children
        if len(paragraphs) == 1 and isinstance(paragraphs[0], nodes.paragraph):
            return "pair"
    is_kept = isinstance(node, nodes.Inline) or node.tagname in _KEPT
    return str(node.tagname) if is_kept else "block"


def _heading(element: Element, tag: str) -> HeadingMark | None:
    return HeadingMark(int(element.get("level"))) if tag == "heading" else None


_GRAMMAR = Grammar(
    blocks=frozenset(["block"]),
    items=frozenset(["list_item"]),
    rows=frozenset(["line", "pair", "row"]),
    cells=frozenset(["entry"]),
    breaks=frozenset(),
    verbatim=frozenset(["doctest_block", "literal_block", "math_block"]),
    heading=_heading,
    left_out=lambda *_: None,
    is_raised=lambda _, tag: tag == "superscript",
    ordered=lambda element: element.get("form") or "",
)
_KEPT = _GRAMMAR.items | _GRAMMAR.rows | _GRAMMAR.cells | _GRAMMAR.verbatim
