"""LaTeX source: sections, text and formulas in Unicode. `\\input` and `\\include` are not followed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, TypeAlias

from pylatexenc.latex2text import (
    EnvironmentTextSpec,
    LatexNodes2Text,
    MacroTextSpec,
    get_default_latex_context_db,
)

from engine.document import Document, MetadataValue
from engine.errors import DocumentError
from engine.readers.assembly import Blocks, assemble, one_line
from engine.readers.encoding import decode

_Node: TypeAlias = Any

_LEVELS = {
    "part": 1, "chapter": 2, "section": 3, "subsection": 4, "subsubsection": 5, "paragraph": 6, "subparagraph": 7,
}  # fmt: skip
_BEGIN_CODE, _END_CODE = r"\begin{verbatim}", r"\end{verbatim}"
_COMMENT = re.compile(
    r"\\begin\{(?P<name>verbatim|lstlisting|minted|alltt)\*?\}(?P<code>.*?)\\end\{(?P=name)\*?\}"
    r"|(?<!\\)(?P<breaks>(?:\\\\)*)%[^\n]*(?:\n[ \t]*(?=\S))?",
    re.DOTALL,
)
_SECTION = re.compile(
    rf"\\(?P<command>{'|'.join(_LEVELS)})\*?[ \t]*(?:\[[^\]]*\])?[ \t]*(?=\{{)"
    r"|\\begin\{(?P<abstract>abstract)\}|\\end\{abstract\}"
    r"|\\abstract[ \t]*(?=\{)"
)
_DROPPED = re.compile(
    r"\\begin\{(thebibliography|comment|tikzpicture|CCSXML|filecontents)\*?\}.*?(?:\\end\{\1\*?\}|\Z)"
    r"|\\(?:bibliography|bibliographystyle|addbibresource|input|include|label|vspace|hspace|includegraphics|usepackage)"
    r"\*?[ \t]*(?:\[[^\]]*\])?\{[^{}]*\}"
    r"|\\(?:printbibliography|maketitle|tableofcontents|appendix|centering|newpage|clearpage|noindent)(?![A-Za-z])",
    re.DOTALL,
)
_DEFINITION = re.compile(r"\\(?:re)?newcommand\*?[ \t]*\{?\\([A-Za-z]+)\}?[ \t]*(?=\{)|\\def\\([A-Za-z]+)[ \t]*(?=\{)")


def read(data: bytes, doc_id: str, source: str) -> Document:
    """Read a LaTeX document.

    Comments, preamble, pictures and the bibliography are left out; the author's
    own macros are expanded where they take no argument.

    Raises:
        DocumentError: no text, too much, or not decodable.
    """
    latex = _COMMENT.sub(lambda match: _code(match["code"]) or match["breaks"] or "", decode(data))
    preamble, begin, body = latex.partition(r"\begin{document}")
    if not begin:
        preamble, body = latex, latex
    body = _expand(body.partition(r"\end{document}")[0], _definitions(preamble))
    document_title = one_line(_plain(_argument_of("title", latex)))
    blocks = Blocks()
    blocks.add(document_title)
    for title, level, part in _parts(_DROPPED.sub(" ", body)):
        blocks.add_heading(_plain(title), level)
        blocks.add(_plain(part))
    return assemble(
        blocks.text,
        blocks.headings,
        doc_id=doc_id,
        source=source,
        title=document_title,
        metadata=_metadata(latex),
    )


def _code(code: str | None) -> str:
    """Program text, as the one environment that the converter does not look into."""
    return f"\n{_BEGIN_CODE}{code}{_END_CODE}\n" if code else ""


def _metadata(latex: str) -> dict[str, MetadataValue]:
    names = re.split(r"\\and(?![A-Za-z])", _argument_of("author", latex))
    authors = [one_line(_plain(re.split(r"\\\\|\\thanks", name)[0])) for name in names]
    date = one_line(_plain(_argument_of("date", latex)))
    fields: dict[str, MetadataValue] = {"authors": [name for name in authors if name], "date": date}
    return {field: value for field, value in fields.items() if value}


def _parts(body: str) -> Iterator[tuple[str, int, str]]:
    """Title, level and source of each section; "" for text that stands under no title."""
    title, level, start = "", 1, 0
    for match in _SECTION.finditer(body):
        if match.start() < start:
            continue
        yield title, level, body[start : match.start()]
        title, level, start = "", 1, match.end()
        if command := match["command"]:
            level, start = _LEVELS[command], _brace_end(body, match.end())
            title = body[match.end() + 1 : start - 1]
        elif match["abstract"]:
            title, level = "Abstract", _LEVELS["section"]
        elif match.group().startswith(r"\abstract"):
            start = _brace_end(body, match.end())
            yield "Abstract", _LEVELS["section"], body[match.end() + 1 : start - 1]
    yield title, level, body[start:]


def _brace_end(text: str, start: int) -> int:
    """One past the brace that closes the one at `start`; the end of the line where there is none."""
    depth = 0
    for match in re.compile(r"\\.|[{}]", re.DOTALL).finditer(text, start):
        depth += {"{": 1, "}": -1}.get(match.group(), 0)
        if depth == 0:
            return match.end()
    end = text.find("\n", start)
    return len(text) if end < 0 else end


def _argument_of(command: str, latex: str) -> str:
    match = re.search(rf"\\{command}[ \t]*(?:\[[^\]]*\])?\s*(?=\{{)", latex)
    return latex[match.end() + 1 : _brace_end(latex, match.end()) - 1] if match else ""


def _definitions(preamble: str) -> dict[str, str]:
    found = {}
    for match in _DEFINITION.finditer(preamble):
        body = preamble[match.end() + 1 : _brace_end(preamble, match.end()) - 1]
        if "#" not in body:
            found[match.group(1) or match.group(2)] = body.replace(r"\xspace", "")
    return found


def _expand(body: str, definitions: dict[str, str]) -> str:
    """Three rounds, for macros in macros, unless the text grows as no author's text does."""
    if not definitions:
        return body
    names = "|".join(sorted(map(re.escape, definitions), key=len, reverse=True))
    use = re.compile(rf"\\({names})(?![A-Za-z])(?:\{{\}})?")
    expanded, limit = body, 2 * len(body) + 10_000
    for _ in range(3):
        body, expanded = expanded, use.sub(lambda match: definitions[match.group(1)], expanded)
        if len(expanded) > limit:
            return body
    return expanded


def _converter() -> LatexNodes2Text:
    context = get_default_latex_context_db()
    silent = "cite citep citet citealp citealt citeauthor citeyear ref eqref cref Cref autoref pageref url footnotemark"
    context.add_context_category(
        "longmatch",
        prepend=True,
        macros=[MacroTextSpec(name, simplify_repl="") for name in silent.split()]
        + [
            MacroTextSpec("caption", simplify_repl="\n\n"),
            MacroTextSpec("footnote", simplify_repl=_footnote_text),
        ],
        environments=[EnvironmentTextSpec("verbatim", simplify_repl=_verbatim_text)]
        + [EnvironmentTextSpec(name, simplify_repl="%s") for name in ("figure", "table", "figure*", "table*")],
    )
    return LatexNodes2Text(latex_context=context, math_mode="text", keep_comments=False)


def _footnote_text(node: _Node, l2tobj: LatexNodes2Text) -> str:
    """In brackets; the converter finds both parameters by their names."""
    arguments = node.nodeargd.argnlist if node.nodeargd else None
    return f" ({l2tobj.nodelist_to_text([arguments[-1]])})" if arguments and arguments[-1] else ""


def _verbatim_text(node: _Node) -> str:
    code: str = node.latex_verbatim()
    return f"\n\n{code[len(_BEGIN_CODE) : -len(_END_CODE)].strip()}\n\n"


_CONVERTER = _converter()


def _plain(latex: str) -> str:
    try:
        text: str = _CONVERTER.latex_to_text(latex)
    except RecursionError as error:
        raise DocumentError("its groups are nested too deeply for the LaTeX parser") from error
    text = re.sub(r"[ \t]+", " ", text)
    text = re.sub(r" +([.,;:)\]])", r"\1", text)
    return re.sub(r" ?\n ?", "\n", re.sub(r"\n\s*\n\s*", "\n\n", text)).strip()
