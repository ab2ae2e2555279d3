"""LaTeX to plain text: accents, symbols and formulas in Unicode; citations and references removed."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import count
from typing import Any, TypeAlias

from pylatexenc.latex2text import LatexNodes2Text, MacroTextSpec, get_default_latex_context_db
from pylatexenc.latexwalker import get_default_latex_context_db as get_default_parser_db

from engine.readers.latex_nesting import balanced

_Node: TypeAlias = Any

_CITED = "\ufdd2"  # a noncharacter: the place of a citation or a reference
_CITATION = re.compile(
    r"\\(?:[A-Za-z]{0,12}[cC]ite[A-Za-z]{0,12}|(?:eq|auto|page|name|full|v|c|C|th|labelc|cpage)?ref|Autoref)\*?"
    r"(?:[ \t]*\[[^\]]{0,300}\]){0,2}[ \t]*\{[^{}]{0,5000}\}"
)
_ALL_CITED = re.compile(
    rf"[(\[](?:(?:e\.g\.|cf\.|see|see also|i\.e\.),?[~\s]{{0,5}})?{_CITED}(?:[\s,;~]{{0,5}}{_CITED})*[)\]]"
)
_BEFORE_CITED = re.compile(rf"(?:(?<![~ \t\n])[~ \t]*(?:\n[~ \t]*)?)?{_CITED}(?:[~ ,;]{{0,5}}{_CITED})*")
_OPTION = re.compile(r"(\\(?!sqrt|item|xrightarrow|xleftarrow)[A-Za-z]{2,40}\*?)\[[^\[\]{}]{0,200}\](?=\{)")
_FIELD = re.compile(r"%(?:\((\d)\))?s")
_WITHOUT_TEXT = (  # no text of their own; arguments of headings and front matter were already read
    "part", "chapter", "section", "subsection", "subsubsection", "paragraph", "subparagraph",
    "title", "author", "date", "maketitle", "includegraphics", "input", "include",
)  # fmt: skip
_COMMAND = re.compile(r"\\(?:[A-Za-z]+\*?|.)|[{}$]", re.DOTALL)
_ALONE = re.compile(r"(?<=\S)\n(?=[,;)])")  # punctuation at the start of a line, after a removed citation


def _converter() -> LatexNodes2Text:
    context = get_default_latex_context_db()
    templates = {spec.macroname: spec.simplify_repl for spec in context.iter_macro_specs()}
    context.add_context_category(
        "longmatch",
        prepend=True,
        macros=[
            MacroTextSpec(name, simplify_repl=_filled(template))
            for name, template in templates.items()
            if isinstance(template, str) and _FIELD.search(template)
        ]
        + [MacroTextSpec(name, simplify_repl="") for name in _WITHOUT_TEXT]
        + [
            MacroTextSpec("caption", simplify_repl="\n\n"),
            MacroTextSpec("footnote", simplify_repl=_filled(" (%(2)s)")),
        ],
    )
    return LatexNodes2Text(latex_context=context, math_mode="text", keep_comments=False)


def _filled(template: str) -> Callable[..., str]:
    """A replacement that fills a template of the converter; missing arguments are empty."""

    def fill(node: _Node, l2tobj: LatexNodes2Text) -> str:
        found = node.nodeargd.argnlist if node.nodeargd and node.nodeargd.argnlist else []
        texts = [l2tobj.nodelist_to_text([one]) if one else "" for one in found]
        following = count(1)
        numbers = [int(match[1] or next(following)) for match in _FIELD.finditer(template)]
        if not any(texts):
            return ""
        words = iter(texts[number - 1] if number <= len(texts) else "" for number in numbers)
        return _FIELD.sub(lambda _: next(words), template)

    return fill


_CONVERTER = _converter()
_PARSER_DB = get_default_parser_db()


def is_known_macro(name: str) -> bool:
    """Whether the converter's parser knows a macro and its arguments."""
    return _PARSER_DB.get_macro_spec(name) is not None


def plain(latex: str) -> str:
    """Convert LaTeX without comments and definitions to text; never fails, even where commands lack arguments."""
    if not latex.strip():
        return ""
    latex = _CITATION.sub(_CITED, latex)
    latex = _BEFORE_CITED.sub("", _ALL_CITED.sub(_CITED, latex))
    text = _converted(balanced(_OPTION.sub(r"\1", latex)))
    text = re.sub(r"[ \t\xa0]+", " ", text)
    text = re.sub(r" ?\n ?", "\n", re.sub(r"\n\s*\n\s*", "\n\n", text))
    return _ALONE.sub("", re.sub(r" +([.,;:)\]])", r"\1", text)).strip()


def _converted(latex: str) -> str:
    try:
        text: str = _CONVERTER.latex_to_text(latex)
    except (RecursionError, LookupError, AttributeError, TypeError, ValueError):
        # The converter expects arguments where a damaged file has none; the words are kept.
        return _COMMAND.sub(" ", latex)
    return text
