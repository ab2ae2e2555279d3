"""Directives and roles of reStructuredText that docutils does not know, mainly those of Sphinx."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from docutils import nodes
from docutils.parsers.rst import Directive, directives, roles
from docutils.parsers.rst.directives.tables import CSVTable
from docutils.parsers.rst.states import Inliner
from docutils.utils import unescape

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


def lenient_inliner() -> Inliner:
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
            return [nodes.inline(rawsource, role_text(unescape(content)), classes=[role])], []
        parsed: _Parsed = interpreted(rawsource, content, role, lineno)
        return parsed

    inliner.parse, inliner.interpreted = parse_short, interpret
    return inliner


def role_text(content: str) -> str:
    """The words that Sphinx shows for a role: "title" of `title <target>`, "c" of `~a.b.c`."""
    titled = _TITLED.fullmatch(content)
    if titled is not None:
        return titled.group(1)
    if content.startswith("~"):
        return content[1:].rpartition(".")[2]
    return content.removeprefix("!")


@contextmanager
def lenient_directives() -> Iterator[None]:
    """Give docutils a directive for every name until the context ends; one thread at a time."""
    with _LOCK:
        original = directives.directive

        def lookup(name: str, language: Any, document: Any) -> tuple[Any, list[Any]]:  # noqa: ANN401
            known = _KNOWN.get(_local(name))
            if known is not None:
                return known, []
            found, messages = original(name, language, document)
            return _lenient(found) if isinstance(found, type) else _Unknown, messages

        directives.directive = lookup
        try:
            yield
        finally:
            directives.directive = original


class _AnyOption(dict[str, Any]):
    """The options of a directive; one that docutils does not know has any value."""

    def __missing__(self, name: str) -> Any:  # noqa: ANN401
        return directives.unchanged


def _lenient(directive: Any) -> Any:  # noqa: ANN401
    return type(directive.__name__, (directive,), {"option_spec": _AnyOption(directive.option_spec or {})})


def _local(name: str) -> str:
    """The name of a directive without its domain: "function" of "py:function"."""
    return name.lower().rpartition(":")[2]


class _Body(Directive):  # type: ignore[misc]
    """A directive that accepts any text; `argument`, `options` and `content` are divided here."""

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


class _WithoutText(_Body):
    """A directive whose argument and body are for programs."""


class _Author(_Body):
    """A directive that names the author of a part; it is metadata."""

    def nodes(self, argument: str, options: list[str]) -> list[Any]:
        return [nodes.author(argument, argument)]


class _Raw(_Body):
    """A directive whose body is in another notation; it is counted."""

    has_short_argument = True

    def nodes(self, argument: str, options: list[str]) -> list[Any]:
        return [nodes.raw("", "\n".join(self.content), format=argument)]


class _File(_Body):
    """A directive that stands for another file; it is counted."""

    def nodes(self, argument: str, options: list[str]) -> list[Any]:
        return [nodes.raw(format=OTHER_FILE)]


class _Literal(_Body):
    """A directive whose body is not reStructuredText; the argument is a language or a file."""

    has_short_argument = True

    def nodes(self, argument: str, options: list[str]) -> list[Any]:
        code = "\n".join(self.content).strip("\n")
        found = _captions(options)
        return [*found, nodes.literal_block(code, code)] if code else found


class _Csv(CSVTable):  # type: ignore[misc]
    """A table whose rows may be in another file, which is counted."""

    option_spec = _AnyOption(CSVTable.option_spec)

    def run(self) -> list[Any]:
        """The nodes that take the place of the directive."""
        if self.options.keys().isdisjoint(("file", "url")):
            rows: list[Any] = super().run()
            return rows
        return [*(nodes.paragraph(title, title) for title in self.arguments), nodes.raw(format=OTHER_FILE)]


class _Toctree(_Body):
    """A list of other files. Titles that are written out are kept, file names are not."""

    def nodes(self, argument: str, options: list[str]) -> list[Any]:
        titles = [match.group(1) for line in self.content if (match := _TITLED.fullmatch(line.strip()))]
        return [*_captions(options), *(nodes.paragraph(title, title) for title in titles)]


class _Unknown(_Body):
    """Any other directive. The argument is a paragraph, the body is parsed like the rest of the document."""

    def nodes(self, argument: str, options: list[str]) -> list[Any]:
        found: list[Any] = []
        if argument and _local(self.name) not in _FOR_PROGRAMS:
            inline, _ = self.state.inline_text(argument, self.lineno)
            found.append(nodes.paragraph(argument, "", *inline))
        container = nodes.container()
        self.state.nested_parse(self.content, self.content_offset, container)
        return [*found, container]


def _captions(options: list[str]) -> list[Any]:
    matches = (_CAPTION.fullmatch(line) for line in options)
    return [nodes.paragraph(match.group(1), match.group(1)) for match in matches if match]


_KNOWN: dict[str, type[Directive]] = {
    **dict.fromkeys(_LITERAL, _Literal),
    **dict.fromkeys(_WITHOUT_TEXT, _WithoutText),
    "raw": _Raw,
    **dict.fromkeys(["sectionauthor", "codeauthor", "moduleauthor"], _Author),
    "csv-table": _Csv,
    **dict.fromkeys(["include", "literalinclude"], _File),
    "class": _Unknown,  # in Sphinx it describes a class; docutils would drop the argument
    "toctree": _Toctree,
}
