"""LaTeX: sections, text and formulas in Unicode, with the files that a document includes, from a folder or packed.

An archive of arXiv is one document, that of its main file. Members are read in memory, links are not followed, and the
content decides, not the name: a browser unpacks a `.gz` file without renaming it.
"""

from __future__ import annotations

import gzip
import io
import posixpath
import re
import tarfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias, cast

from pylatexenc.latex2text import EnvironmentTextSpec, LatexNodes2Text, MacroTextSpec, get_default_latex_context_db
from pylatexenc.latexwalker import LatexToken, LatexWalker
from pylatexenc.latexwalker import get_default_latex_context_db as get_default_parser_db
from pylatexenc.macrospec import std_macro

from engine.errors import DocumentError
from engine.readers import latex_commands, latex_macros
from engine.readers import left_out as reasons
from engine.readers.blocks import Blocks, n_lost
from engine.readers.encoding import MAX_CONTAINER_BYTES, read_limited
from engine.readers.fields import dated, split_names
from engine.readers.latex_macros import Macro, closing_braces, group_at, without_settings
from engine.readers.latex_source import PLACE, LatexSource, Members, included_files, is_fragment, load
from engine.readers.reader import GZIP, suffix_of
from engine.text.cleaning import MAX_DOCUMENT_BYTES, grouped, joined_lines, one_line, raised, without_encoded
from engine.text.document import Document, MetadataValue, Scalar, is_made_up_title

__all__ = ["included_files", "read", "read_in_folder", "read_loaded"]

_LEVELS = {
    "part": 1, "chapter": 2, "section": 3, "subsection": 4, "subsubsection": 5, "paragraph": 6, "subparagraph": 7,
    "addpart": 1, "addchap": 2, "addsec": 3, "minisec": 6,
}  # fmt: skip
_SECTION = re.compile(
    rf"\\\\|\\(?P<command>{'|'.join(_LEVELS)})\*?\s{{0,9}}(?:\[[^\]]{{0,1000}}\])?\s{{0,9}}(?=\{{)"
    r"|\\begin\{(?P<abstract>abstract)\}|\\end\{abstract\}"
    r"|\\abstract\s{0,9}(?=\{)"
)
_MAX_TITLE_CHARS = 2_000  # in source
_DROPPED = re.compile(
    r"\\begin\{(thebibliography|tikzpicture|CCSXML|filecontents)\*?\}.*?(?:\\end\{\1\*?\}|\Z)"
    r"|\\tikz(?![A-Za-z])\s{0,3}(?:\[[^\]]{0,200}\]\s{0,3})?(?:\\[a-z]++[^;{}]{0,500};|\{(?:[^{}]|\{[^{}]{0,200}\}){0,500}+\})",
    re.DOTALL,
)
_ABSTRACT = re.compile(r"\\begin\{abstract\}.*?\\end\{abstract\}", re.DOTALL)
_PICTURE = re.compile(
    r"\\(?:includegraphics|plotone|plottwo|epsfig|psfig|epsfbox|epsffile)(?![A-Za-z])|\\begin\{tikzpicture\}|\\tikz(?![A-Za-z])"
)
_BIBLIOGRAPHY_ITEM = re.compile(r"\\bibitem(?![A-Za-z])")
_FRONT = re.compile(
    r"\\((?:icml)?[Tt]itle|(?:icml)?[Aa]uthors?|collaboration|date|subtitle|[aA]bstract|name)\*?\s{0,9}"
    r"(?:\[[^\]]{0,1000}\]\s{0,9}){0,2}(?=\{)"
)
_AUTHOR_BORDER = re.compile(r"\\(?:and|And|AND)(?![A-Za-z])|\n[ \t]{0,99}\n")
_AUTHOR_SPACE = re.compile(r"\\(?:quad|qquad|hfill|hspace\*?\{[^{}]{0,40}\})(?![A-Za-z])|(?<!\\)&")
_LEADING_AND = re.compile(r"^(?:and|&)\s+")
_ADDRESS = re.compile(r"(?<!\S)\S+@\S+.*")  # of mail
_THANKS = re.compile(r"\\(?:thanks|footnote)(?:\[\d{0,3}\])?(?=\{)")
_AUTHOR_NOTE = re.compile(
    r"\\(?:[A-Za-z]{0,9}[tT]hanks|footnote|footnotetext|IEEEmembership|orcid|orcidID|orcidlink|authornote|note|equalcont)(?=\{)"
)
_ADDRESS_BLOCK = re.compile(r"\\IEEEauthorblockA\s{0,9}(?=\{)")
_ARRANGED = re.compile(r"\\hspace\*?\{[^{}]{0,40}\}")
_AUTHOR_END = re.compile(
    r"\\(?:thanks|footnote|inst|affil|affaddr|orcid|email|texttt|tt|url|addr|address|IEEEauthorblockA)"
    r"(?![A-Za-z])"
)
_AUTHOR_MARK = re.compile(
    r"\$\s{0,9}\^[^$]{0,40}\$|\\textsuperscript\{[^{}]{0,40}\}|\^\{[^{}]{0,40}\}|\\thanksref\{[^{}]{0,40}\}"
    r"|\\(?:corref|fnref|inst|[A-Za-z]{1,20}mark|samethanks)(?:\[[^\]]{0,40}\]|\{[^{}]{0,40}\})*"
    r"|\\affil\{[\d,* ]{1,20}\}|\\IEEEauthorblockN(?![A-Za-z])|\b\d{1,2}\\textsuperscript\{(?:st|nd|rd|th)\}"
)


_USUAL = {  # commands of packages, as the author would define them
    "texorpdfstring": Macro("#1", "mm"),
    **dict.fromkeys(
        ["subfloat", "subfigure", "subtable"], Macro("\n\n" r"\IfValueTF{#2}{#2}{\IfValueT{#1}{#1}}" "\n\n#3", "oom")
    ),
    "subcaptionbox": Macro("\n\n#3\n\n#6", "*omoom"),
    "frametitle": Macro(r"\subsubsection{#1}" "\n\n", "m"),
    "begin{frame}": Macro(
        "\n\n" r"\IfNoValueTF{#2}{}{\subsubsection{#2}}" "\n\n" r"\IfNoValueTF{#3}{}{#3}" "\n\n", "ogg"
    ),
    "end{frame}": Macro("\n\n"),
    "framesubtitle": Macro("\n\n#1\n\n", "m"),
    "begin{proof}": Macro("\n\n" r"\IfValueTF{#1}{#1}{Proof}. ", "o"),
    "end{proof}": Macro("\n\n"),
    "alignauthor": Macro(r"\and "),
    **dict.fromkeys(["sidenote", "endnote", "tablefootnote", "marginpar", "marginnote"], Macro(" (#2) ", "omo")),
    "babelhyphen": Macro("-", "*m"),
    "tabularnewline": Macro(r"\\ "),
    "footnotetext": Macro(r"\footnote{#2}", "om"),
    "acro": Macro(r"\par \IfNoValueTF{#2}{#1}{#2} #3", "mom"),  # of a list of acronyms
    **{
        name: Macro(rf"\section{{{'Acknowledgments' if word in ('ack', 'acks') else word.capitalize()}}}" "\n\n")
        for word in ("ack", "acks", "acknowledgment", "acknowledgments", "acknowledgement", "acknowledgements")
        for name in (word, f"begin{{{word}}}")
    },
    **dict.fromkeys(["enquote", "say"], Macro("\u201c#3\u201d", "*om")),
    "epigraph": Macro("\n\n#1 #2\n\n", "mm"),
    "nomenclature": Macro(" #2 #3 ", "omm"),
    "textquote": Macro("\u201c#4\u201d", "*oom"),
    "blockquote": Macro("\n\n#4\n\n", "*oom"),
    **dict.fromkeys(["textcquote", "blockcquote"], Macro("\u201c#5\u201d", "*oomm")),
    **dict.fromkeys(
        ["opening", "closing", "ps", "encl", "cc", "address", "affiliation", "affil", "institute"],
        Macro("\n\n#3\n\n", "*om"),
    ),
    **dict.fromkeys(["intertext", "shortintertext"], Macro(r"\text{ #1 } ", "m")),
    "Description": Macro("\n\n#2\n\n", "om"),
    "tablenotetext": Macro("\n\n#1 #2", "mm"),
    "tablenotemark": Macro(r"\textsuperscript{#1}", "m"),
}
_STEPS = {  # of algorithms, in three packages
    **dict.fromkeys(["State", "Statex", "EndIf", "EndFor", "EndWhile", "EndLoop", "EndProcedure", "EndFunction"], ""),
    **dict.fromkeys(["If", "uIf", "lIf"], "if #1 then "), **dict.fromkeys(["ElsIf", "ElseIf"], "else if #1 then "),
    **dict.fromkeys(["For", "ForAll", "ForEach"], "for #1 do "), "While": "while #1 do ", "Until": "until #1 ",
    **dict.fromkeys(["Else", "lElse", "uElse"], "else "), "Repeat": "repeat ", "Loop": "loop ", "Return": "return ",
    "Require": "Require: ", "Ensure": "Ensure: ", "eIf": r"if #1 then \\ #2 \\ else \\ #3 ", "KwRet": "return ",
    "KwIn": "Input: #1 ", "KwOut": "Output: #1 ", "KwData": "Data: #1 ", "KwResult": "Result: #1 ",
    **dict.fromkeys(["Procedure", "Function"], "#1(#2) "),
}  # fmt: skip
_ALGORITHMS = {
    **{name: Macro(rf"\\ {body}", "g" * body.count("#")) for name, body in _STEPS.items()},
    **{name.upper(): Macro(rf"\\ {body}", "g" * body.count("#")) for name, body in _STEPS.items()},
    "Call": Macro("#1(#2)", "mm"), **dict.fromkeys(["Comment", "COMMENT", "tcp", "tcc"], Macro(r" \\ #2 ", "*m")),
}  # fmt: skip


_PLAIN = {  # commands of plain TeX and AMS-TeX
    "beginsection": Macro(r"\section{#1}" "\n\n", "m", delimiters=("", "\n\n")),
    "footnote": Macro(r" (\IfValueTF{#2}{#2}{#1}) ", "mg"),
    "heading": Macro(r"\section{#1}" "\n\n", "m", delimiters=("", r"\endheading")),
    "head": Macro(r"\section{#1}" "\n\n", "m", delimiters=("", r"\endhead")),
    "subhead": Macro(r"\subsection{#1}" "\n\n", "m", delimiters=("", r"\endsubhead")),
    "title": Macro(r"\Title{#1}", "m", delimiters=("", r"\endtitle")),
    "author": Macro(r"\Author{#1}", "m", delimiters=("", r"\endauthor")),
}
_IS_PLAIN = re.compile(r"\\(?:bye|beginsection|endtitle|endhead|endheading|input[ \t{]{0,3}amstex)(?![A-Za-z])")


_AFFILIATION = re.compile(r"\\affiliation\s{0,3}(?:\[[^\]]{0,40}\])?\s{0,3}\{(?:[^{}]++|\{[^{}]*+\})*+\}")
_AFFILIATION_KEY = re.compile(
    r"(?<![A-Za-z])(?:organization|department|addressline|city|citysep|postcode|state|country)\s{0,9}=\s{0,9}(?=\{)"
)
_CENTRED = re.compile(r"\\centerline\s{0,3}\{((?:[^{}]++|\{[^{}]*+\})*+)\}")


def _is_kept(name: str) -> bool:
    """Whether a definition of a macro in a document is ignored."""
    return name in _LEVELS or name in ("title", "author", "date") or (len(name) > 1 and is_known_macro(name))


def read(data: bytes, doc_id: str, source: str) -> Document:
    """Read a LaTeX document that is not in a folder; the files that it includes are left out.

    Comments, definitions, pictures and the bibliography are left out, too; the author's
    own macros are expanded where they take no argument.
    """
    return read_loaded(load(data), doc_id, source)


def read_in_folder(data: bytes, doc_id: str, source: str) -> Document:
    """Like `read`, with the files that `source` includes from its folder and from folders below.

    Files that cannot be included are listed in the metadata, as `missing_files`.
    """
    return read_loaded(load(data, Path(source)), doc_id, source)


def read_loaded(latex: LatexSource, doc_id: str, source: str, n_others: int = 0) -> Document:
    """The document of a source; `n_others` documents beside it are counted as left out."""
    tex, n_encoded = without_encoded(latex.text)
    tex, n_variants = latex_commands.without_branches(tex)
    tex, n_repeated = latex_commands.without_repeated_rows(tex)
    tex, n_undefined = latex_commands.with_named_references(
        latex_commands.with_shorthands(latex_commands.without_tabs(latex_commands.without_overlays(tex)))
    )
    tex = _AFFILIATION.sub(lambda match: _AFFILIATION_KEY.sub("", match.group()), tex)
    text, macros = latex_macros.without_definitions(
        latex_commands.with_units(latex_commands.with_acronyms(latex_macros.without_columns(tex))), _is_kept
    )
    is_plain = _IS_PLAIN.search(text) is not None and r"\begin{document}" not in text
    usual = _USUAL | (_PLAIN if is_plain else {}) | (_ALGORITHMS if r"\begin{algorithm" in text else {})
    macros |= {name: macro for name, macro in usual.items() if f"\\{name}" in text and name not in macros}
    text, revisions = latex_commands.without_revisions(
        latex_commands.with_item_numbers(latex_macros.expanded(text, macros))
    )
    front = _front_matter(text)
    if is_plain and not front["title"] and (centred := _CENTRED.search(text)):
        front["title"], text = [centred[1]], text[: centred.start()] + text[centred.end() :]
    titles = [one for one in front["title"] if not is_made_up_title(plain(one))] or front["title"]
    shown, thanks = _without_notes(titles[0], _THANKS) if titles else ("", [])
    title = one_line(latex.with_code(plain(shown)))
    preamble, begin, body = text.partition(r"\begin{document}")
    body = (body if begin else text).partition(r"\end{document}")[0]
    if begin:
        abstracts = (rf"\abstract{{{abstract}}}" for abstract in _front_matter(preamble)["abstract"])
        end = preamble.rfind(r"\end{abstract}") + len(r"\end{abstract}")
        body = "".join([*(match.group() for match in _ABSTRACT.finditer(preamble, 0, end)), *abstracts, body])
    blocks = Blocks()
    blocks.add(title)
    for words in (*front["subtitle"][:1], *thanks):
        blocks.add(latex.with_code(plain(words)))
    blocks.left_out.update(revisions + Counter({
        reasons.VARIANTS: n_variants,
        reasons.COMMENT_WORDS: latex.n_hidden,
        reasons.ENCODED: n_encoded,
        reasons.RUNNING_HEADS: n_repeated,
        reasons.FIGURES: len(_PICTURE.findall(body)),
        reasons.REFERENCES: len(_BIBLIOGRAPHY_ITEM.findall(body)),
        reasons.FILES: len(latex.missing),
        reasons.LABELS: n_undefined,
        reasons.DOCUMENTS: n_others,
    }))  # fmt: skip
    removed = [
        match.group() for pattern in (_DROPPED, _CITATION, _OPTION, _SECTION) for match in pattern.finditer(body)
    ]
    removed += [match.group() for match in _ALL_CITED.finditer(_CITATION.sub(_CITED, body))]
    for heading, level, part in _parts(without_settings(_BESIDE_WORDS.sub(" ", _DROPPED.sub(" ", body)), removed)):
        titled, notes = _without_notes(heading, _THANKS)
        blocks.add_heading(latex.with_code(plain(titled)), level)
        for paragraph in (*notes, part):
            blocks.add(latex.with_code(plain(paragraph)))
    metadata = _metadata(front, latex)
    fields = [_WITH_DIGITS.sub(" ", PLACE.sub(" ", without_settings(preamble, removed)))] if begin else []
    fields += [value for field in ("author", "date", "name", "notes") for value in front[field]]
    accounted = [title, blocks.text, *map(str, metadata.values()), *front["date"][:1]]
    blocks.left_out[reasons.FRONT_MATTER] = n_lost(accounted, list(map(_words, fields)))
    blocks.expect(_words(body))
    for words in (*removed, *front["author"], *front["notes"], *front["date"]):
        blocks.skip(_words(words))
    return blocks.document(doc_id, source, title, metadata)


def _words(latex: str) -> str:
    """The words of a source outside of its commands."""
    latex = _ACCENT.sub(
        lambda sign: " " if sign[0].startswith("\\") and len(sign[0]) > 2 else "", PLACE.sub(" ", latex)
    )
    return _NO_WORDS.sub(" ", latex)


_WITH_DIGITS = re.compile(r"\b[^\W\d]*+\d\w*+")
_ACCENT = re.compile(
    r"\\[bcdkrtuvH](?:\{\\?[A-Za-z]{1,2}\}|\s[A-Za-z])|\\[\"'^`~=.]\s{0,3}\{?\\?[A-Za-z]?\}?|(?<=[^\W\d_])\{\}|\\-|\\/|\$"
)
_NO_WORDS = re.compile(
    r"\\(?:begin|end)[ \t]{0,9}\{[^{}\n]{0,80}\}(?:\[[^\]\n]{0,80}\])?(?:\{[lcr|@!*\d. ]{1,40}\})?"
    r"|\\\\\*?\[[^\]\n]{0,30}\]|\\(?:@|[^\W\d_]){1,60}\*?|\\.|(?<=[^\W\d_])[{}]|[{}_^]"
)


def _front_matter(text: str) -> dict[str, list[str]]:
    """The arguments of each \\title, \\author and \\date."""
    closing, start = closing_braces(text), 0
    names = ("title", "author", "date", "subtitle", "abstract", "name", "notes")
    found: dict[str, list[str]] = {name: [] for name in names}
    for match in _FRONT.finditer(text):
        if match.start() >= start:
            group = group_at(text, match.end(), closing)
            name = match[1].removeprefix("icml").lower()
            name = "author" if name in ("authors", "collaboration") else name
            value = text[group.start : group.stop]
            if match[1] == "Author" and text.startswith("{", group.end):  # of Copernicus: given and family names
                given, group = value, group_at(text, group.end, closing)
                value = f"{given} {text[group.start : group.stop]}"
            if name == "author":
                value, notes = _without_notes(_ARRANGED.sub(r"\\quad ", value), _AUTHOR_NOTE)
                found["notes"] += notes
            found[name].append(without_settings(value))
            start = group.end
    return found


def _without_notes(title: str, pattern: re.Pattern[str], put: str = "") -> tuple[str, list[str]]:
    """A title or a list of authors with `put` in place of its notes, and the notes."""
    closing, parts, notes, start = closing_braces(title), list[str](), list[str](), 0
    for match in pattern.finditer(title):
        if match.start() >= start:
            group = group_at(title, match.end(), closing)
            parts.append(title[start : match.start()])
            notes.append(title[group.start : group.stop])
            start = group.end
    return put.join([*parts, title[start:]]), notes


def _metadata(front: Mapping[str, list[str]], latex: LatexSource) -> dict[str, MetadataValue]:
    names = [
        name
        for author in front["author"] or front["name"]
        for line in _lines_of_names(_without_notes(author, _ADDRESS_BLOCK, r"\and ")[0])
        for name in split_names(_LEADING_AND.sub("", _ADDRESS.sub("", one_line(plain(line)))).strip(" *"))
    ]
    authors: list[Scalar] = [name for name in dict.fromkeys(names) if any(map(str.isalpha, name))]
    fields: dict[str, MetadataValue] = {
        "authors": authors,
        **dated(one_line(plain(front["date"][0])) if front["date"] else ""),
        "missing_files": list(latex.missing),
    }
    return {field: value for field, value in fields.items() if value}


def _lines_of_names(author: str) -> Iterator[str]:
    """The lines with names at the start of each group of authors; what follows a line of names is an affiliation.

    The next line has names, too, where a line ends with a comma, and where each of its names has a mark behind it.
    """
    for part in _AUTHOR_BORDER.split(author):
        goes_on = True
        for line in _LINE_END.split(part):
            names = _AUTHOR_SPACE.split(line)
            goes_on |= bool(_NAME_FIRST.match(line)) and len(_AUTHOR_MARK.findall(line)) >= len(names)
            if not goes_on and line.strip():
                break
            for name in names:
                yield _AUTHOR_END.split(_AUTHOR_MARK.sub(" ", name))[0]
            goes_on = _AUTHOR_MARK.sub("", line).rstrip(" \t\n{}").endswith(",") or (goes_on and not line.strip())


_LINE_END = re.compile(r"\\\\\*?(?:\[[^\]\n]{0,30}\])?")
_NAME_FIRST = re.compile(r"\s*\{?(?:\\(?:bf|textbf|bfseries)\b\s*)?\{?[^\W\d_]")


def _parts(body: str) -> Iterator[tuple[str, int, str]]:
    """Title, level and source of each section; "" for text without a title."""
    closing = closing_braces(body)
    title, level, start = "", 1, 0
    for match in _SECTION.finditer(body):
        if match.start() < start or match.group() == r"\\":
            continue
        yield title, level, body[start : match.start()]
        title, level, start = "", 1, match.end()
        if command := match["command"]:
            group = group_at(body, match.end(), closing)
            size = group.stop - group.start
            if size > _MAX_TITLE_CHARS or body.find("\n\n", group.start, group.stop) >= 0:  # closed by another brace
                group = group_at(body, match.end(), {})
            title, level, start = body[group.start : group.stop], _LEVELS[command], group.end
        elif match["abstract"]:
            title, level = "Abstract", _LEVELS["section"]
        elif match.group().startswith(r"\abstract"):
            group = group_at(body, match.end(), closing)
            start = group.end
            yield "Abstract", _LEVELS["section"], body[group.start : group.stop]
    yield title, level, body[start:]


_Node: TypeAlias = Any

_DISPLAY_STYLE = re.compile(r"\\(?:displaystyle|textstyle|scriptstyle|limits|nolimits)(?![A-Za-z])")
_CITED = "\ufdd2"  # a noncharacter: the place of a citation or a reference
_CITATION = re.compile(
    r"\\(?:(?P<several>[A-Za-z]{0,12}[cC]ites|[A-Za-z]{0,12}[rR]efrange\*?)(?:\([^()]{0,300}\)){0,2}"
    r"|[A-Za-z]{0,12}[cC]ite[A-Za-z]{0,12}\*?|(?:eq|auto|c?page|name|full|v|vpage|[cC]|labelc|namec|th|zc?|sub|foot)?ref\*?"
    r"|Autoref\*?|(?!h(?:yper)?ref)[A-Za-z]{1,12}[rR]ef\*?"
    r"(?=(?:\[[^\]]{0,300}\]){0,2}\{[a-z]{1,12}[:_-][^{}\s]{0,300}\}(?!\{)))"
    r"(?:[ \t]*\[[^\]]{0,300}\]){0,2}[ \t]*\{[^{}]{0,5000}\}"
    r"(?(several)(?:(?:\[[^\]]{0,300}\]){0,2}\{[^{}]{0,300}\}){0,20})"
)
_ALL_CITED = re.compile(
    rf"[(\[](?:(?:e\.g\.|cf\.|see|see also|i\.e\.),?[~\s]{{0,5}})?{_CITED}(?:[\s,;~]{{0,5}}{_CITED})*[)\]]"
)
_BEFORE_CITED = re.compile(rf"(?:(?<![~ \t\n])[~ \t]*(?:\n[~ \t]*)?)?{_CITED}(?:[~ ,;]{{0,5}}{_CITED})*")
_RAISED = re.compile(r"(?<=([\w.,;:!?)]))\\(?:textsuperscript|up|tnote)\{(\w[\w,;\u2013 -]{0,20})\}")
_BESIDE_WORDS = re.compile(  # a command of several words, as a note, behind a word
    r"(?<=[^\W_])(?=\\[A-Za-z]{2,40}\*?(?:\[[^\[\]{}]{0,100}\])?(?:\{\d{0,3}\})?\{[^\W_][^{}\s]{0,40}[ ~\n])"
)
_OPTION = re.compile(r"(\\(?!sqrt|item|xrightarrow|xleftarrow)[A-Za-z]{2,40}\*?)\[[^\[\]{}]{0,200}\](?=\{)")
_OPEN_BRACKET = re.compile(  # without an end, which the converter searches for up to the end of the text
    r"(\\(?:begin\{[^{}\n]{1,60}\}|[A-Za-z]{1,60}\*?)[ \t]?)"
    r"\[(?![^\[\]]{0,500}(?:\[[^\[\]]{0,200}\][^\[\]]{0,200}){0,3}\])"
)
_GROUPS = re.compile(r"(?<=[\w}][\w.,;:!?)$])\}(?=(?:\{\})*\{\w)")  # two arguments, of which the first is words
_SYMBOL_FIRST = re.compile(  # a letter and words, but no initial with the rest of its word
    r"\\(?!lettrine|dropcap|initial|yinipar|(?:IEEE)?PARstart)([A-Za-z]{2,40})\*?(?:\[[^\[\]{}]{0,100}\])?\{\w\}(?=\{[^\W\d_]{3})"
)
_GLUED = re.compile(r"(?<=[\w.,;:!?)])\}(?=\\([A-Za-z]{2,40})\*?(?:\[[^\[\]]{0,200}\])?\{\w)")
_BETWEEN_WORDS = re.compile(r"(?<=[\w.,;:!?)])\\([A-Za-z]{3,40})(?=\s{1,9}\w)")
_OPERATOR = re.compile(
    r"(?<=[^\W_])(?=\\(?:log|ln|lg|exp|sin|cos|tan|max|min|arg|det|dim|ker|lim|sup|inf|deg|gcd|Pr|b?mod)(?![A-Za-z]))"
)
_DEGREES = re.compile(r"\^\s{0,3}(?:\{\s{0,3}\\circ\s{0,3}\}|\\circ(?![A-Za-z]))")
_FIELD = re.compile(r"%(?:\((\d)\))?s")
_WITHOUT_TEXT = (  # no text of their own; arguments of headings and front matter were already read
    "part", "chapter", "section", "subsection", "subsubsection", "paragraph", "subparagraph",
    "title", "author", "date", "maketitle", "includegraphics", "input", "include", "-", "today",
)  # fmt: skip
_WITH_TEXT = (  # the converter drops theirs, or writes its letters as signs of mathematics
    "mbox", "textmd", "textsf", "texttt", "textup", "citetext", "mathsf", "mathit", "mathtt", "mathbf",
)  # fmt: skip
_SIGNS = {
    "S": "§", "P": "¶", "copyright": "©", "pounds": "£", "euro": "€", "texteuro": "€", "textsection": "§",
    "textparagraph": "¶", "textdegree": "°", "degree": "°", "textcelsius": "°C", "textmu": "µ", "textohm": "Ω",
    "textsterling": "£", "textcent": "¢", "textyen": "¥", "texttimes": "×", "textpm": "±", "checkmark": "✓",
    "textonehalf": "½", "No": "№", "textnumero": "№", "hyp": "-", "slash": "/", "og": "«", "fg": "»",
    "no": "n°", "nos": "n°", "ier": "er", "iere": "re", "iers": "ers", "ieres": "res", "ieme": "e", "iemes": "es",
    **{logo: logo for logo in ("TeX", "LaTeX", "BibTeX", "XeTeX", "XeLaTeX", "LuaTeX")}, "LaTeXe": "LaTeX2e",
    "glqq": "„", "grqq": "“", "flqq": "«", "frqq": "»", "glq": "‚", "grq": "‘", "flq": "‹", "frq": "›",
}  # fmt: skip
_SIGNS |= dict(zip(
    "ne models lll ggg land lor neg ddagger gets iff implies impliedby leadsto bigodot biguplus Re Im bot clubsuit "
    "diamondsuit heartsuit spadesuit imath jmath colon Box Diamond maltese circledR bigstar mathellipsis owns veebar "
    "nsim ncong varpropto thickapprox eqsim coloneqq eqqcolon vcentcolon colonequals vDash unlhd unrhd lhd rhd over "
    "| triangle lbrack rbrack bigsqcup restriction Join centerdot cdotp nleqslant ngeqslant permil "
    "gt lt infin isin exist sube plusmn larr rarr lArr rArr harr hArr sdot bull alef weierp"
    .split(), "≠⊨⋘⋙∧∨¬‡←⇔⇒⇐⇝⨀⨄ℜℑ⊥♣♢♡♠ıȷ:□◇✠®★…∋⊻≁≇∝≈≂≔≕:≔⊨⊴⊵⊲⊳/‖△[]⨆↾⋈··≰≱‰><∞∈∃⊆±←→⇐⇒↔⇔⋅•ℵ℘", strict=True
))  # fmt: skip
_SIGNS |= {f"{kind}{name}": sign for kind, names, signs in (  # upright small and italic capital letters
    ("up", "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau upsilon phi "
           "chi psi omega", "αβγδεζηθικλμνξπρστυφχψω"),
    ("var", "Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega", "ΓΔΘΛΞΠΣΥΦΨΩ"),
) for name, sign in zip(names.split(), signs, strict=True)}  # fmt: skip
_SIGNS |= {f"text{name}": sign for name, sign in zip(
    "bar less greater braceleft braceright underscore quotedbl periodcentered bardbl langle rangle minus div "
    "rightarrow leftarrow onesuperior twosuperior threesuperior visiblespace".split(),
    '|<>{}_"·‖⟨⟩−÷→←¹²³ ', strict=True)
}  # fmt: skip
_SIGNS |= {name: name for name in "det dim ker deg gcd Pr hom cot sec csc lg mod".split()}
_SIGNS |= {"bmod": "mod", "arg": "arg ", "choose": " choose "}
_IN_FORMULAS = {  # commands with two arguments or more that the converter lacks, and how they look
    **dict.fromkeys(["frac", "dfrac", "tfrac", "cfrac", "nicefrac", "sfrac"], ("{{", "%s/%s")),
    "operatorname": ("*{", "%(2)s"),
    **dict.fromkeys(["binom", "dbinom", "tbinom"], ("{{", "(%s over %s)")),
    **dict.fromkeys(["overset", "stackrel"], ("{{", "%(2)s^%(1)s")), "underset": ("{{", "%(2)s_%(1)s"),
    "genfrac": ("{{{{{{", "%(1)s%(5)s/%(6)s%(2)s"), "pmod": ("{", "(mod %s)"),
    "xrightarrow": ("[{", "→^%(2)s"), "xleftarrow": ("[{", "←^%(2)s"),
}  # fmt: skip
_MATRICES = {  # environments of rows and cells, and the brackets around them
    **dict.fromkeys(["array", "matrix", "smallmatrix"], ""), **dict.fromkeys(["pmatrix", "psmallmatrix"], "()"),
    **dict.fromkeys(["bmatrix", "bsmallmatrix"], "[]"), "Bmatrix": "{}", "vmatrix": "||", "Vmatrix": "‖‖",
}  # fmt: skip
_CELL_BORDER = re.compile(r", ?(?=[=<>≤≥≠≈≡])|(?<=[=<>≤≥≠≈≡]), ")  # beside a relation
_NO_DELIMITER = re.compile(r"\\(?:left|right)\s{0,9}\.")
_LOW_DIGIT = re.compile(r"(?<=[A-Za-z)])\$_(?:(\d)|\{(\d{1,3})\})\$")  # of a chemical formula
_COMMAND = re.compile(r"\\(?:[A-Za-z]+\*?|.)|[{}$]", re.DOTALL)
_QUOTED = re.compile(r"`([^`'\n]{1,300})'(?!\w)")
_ALONE = re.compile(r"(?<=\S)\n(?=[,;)])")  # punctuation at the start of a line, after a removed citation


def formula_text(tex: str) -> str:
    """The text of a formula in the notation of TeX, maybe with a document around it, on one line."""
    _, begin, body = tex.partition(r"\begin{document}")
    body = (body if begin else tex).partition(r"\end{document}")[0].strip()
    if not re.match(r"\$|\\\(|\\\[|\\begin", body):
        body = f"${body}$"
    return one_line(plain(without_settings(_DISPLAY_STYLE.sub("", body))))


def _converter() -> LatexNodes2Text:
    context = get_default_latex_context_db()
    own = {spec.macroname: spec.simplify_repl for spec in context.iter_macro_specs()}
    looks: dict[str, Any] = {
        name: _filled(look) for name, look in own.items() if isinstance(look, str) and _FIELD.search(look)
    }
    looks |= {**dict.fromkeys(_WITHOUT_TEXT, ""), **_SIGNS, **dict.fromkeys(_WITH_TEXT, _filled("%(1)s"))}
    looks |= {name: _filled(look) for name, (_, look) in _IN_FORMULAS.items()}
    looks |= {"caption": "\n\n", "keywords": _filled("\n\n%(1)s\n\n")}
    looks |= {"sqrt": _filled("%(1)s√(%(2)s)"), "footnote": _filled(" (%(2)s)")}
    context.add_context_category(
        "longmatch",
        prepend=True,
        macros=[MacroTextSpec(name, simplify_repl=look) for name, look in looks.items()],
        environments=[EnvironmentTextSpec(name, simplify_repl=_matrix(around)) for name, around in _MATRICES.items()],
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
        texts = list(map(grouped, map(str.strip, texts))) if "/" in template else texts
        words = iter(texts[number - 1] if number <= len(texts) else "" for number in numbers)
        text = _FIELD.sub(lambda _: next(words), template)
        return text.rstrip("^_") if re.search(r"[\^_]%", template) else text

    return fill


def _matrix(brackets: str) -> Callable[..., str]:
    """A replacement that writes the rows of a matrix on one line, as those of MathML and Word: "(1, 2; 3, 4)"."""

    def write(node: _Node, l2tobj: LatexNodes2Text) -> str:
        rows: list[list[list[_Node]]] = [[[]]]
        for part in node.nodelist:
            if getattr(part, "macroname", "") == "\\":
                rows.append([[]])
            elif getattr(part, "specials_chars", "") == "&":
                rows[-1].append([])
            else:
                rows[-1][-1].append(part)
        shown = (", ".join(l2tobj.nodelist_to_text(cell).strip() for cell in row) for row in rows)
        return brackets[:1] + "; ".join(_CELL_BORDER.sub(" ", row) for row in shown if row) + brackets[1:]

    return write


_CONVERTER = _converter()
_SHOWN = frozenset(spec.macroname for spec in _CONVERTER.latex_context.iter_macro_specs())
_PARSER_DB = get_default_parser_db()
_PARSER_DB.add_context_category("longmatch", macros=[std_macro(name, look[0]) for name, look in _IN_FORMULAS.items()])
_SPECIALS = re.escape("".join({spec.specials_chars[0] for spec in _PARSER_DB.iter_specials_specs()}))
_WORDS = re.compile(r"(\s{0,9}+)(\w++(?:\s++\w++)*+)".replace(r"\w", rf"[^\s\\%{{}}$\[\]{_SPECIALS}]"))


class _Walker(LatexWalker):  # type: ignore[misc]
    """Reads words at once, rather than each character as a token, but not where a command may have an argument."""

    def get_token(self, pos: int, include_brace_chars: Any = None, **options: Any) -> LatexToken:  # noqa: ANN401
        is_text = options.keys() == {"parsing_state"} and not include_brace_chars
        words = _WORDS.match(self.s, pos) if is_text else None
        if words is None:
            return super().get_token(pos, include_brace_chars, **options)
        return LatexToken("char", words[2], words.start(2), len(words[2]), pre_space=words[1])


def is_known_macro(name: str) -> bool:
    """Whether the converter's parser knows a macro and its arguments."""
    return _PARSER_DB.get_macro_spec(name) is not None


def plain(latex: str) -> str:
    """Convert LaTeX without comments and definitions to text; never fails, even where commands lack arguments."""
    if not latex.strip():
        return ""
    latex = _LOW_DIGIT.sub(r"\1\2", _NO_DELIMITER.sub("", latex))
    latex = _RAISED.sub(lambda match: raised(match[1], match[2]), _CITATION.sub(_CITED, latex))
    latex = _BEFORE_CITED.sub("", _ALL_CITED.sub(_CITED, latex))
    latex = _BETWEEN_WORDS.sub(lambda match: match[0] if match[1] in _SHOWN or is_known_macro(match[1]) else " ", latex)
    latex = _SYMBOL_FIRST.sub(lambda match: match[0] if is_known_macro(match[1]) else f"{match[0]} ", latex)
    latex = _GLUED.sub(lambda match: "}" if is_known_macro(match[1]) else "} ", _GROUPS.sub("} ", latex))
    latex = _OPEN_BRACKET.sub(r"\1{[}", _OPTION.sub(r"\1", _DEGREES.sub("°", _OPERATOR.sub(" ", latex))))
    text = _converted(latex_macros.balanced(latex))
    text = re.sub(r"[ \t\xa0]+", " ", text)
    text = re.sub(r" ?\n ?", "\n", re.sub(r"\n\s*\n\s*", "\n\n", text))
    text = _QUOTED.sub("\u2018\\1\u2019", "\n\n".join(map(joined_lines, text.split("\n\n"))))
    return _ALONE.sub("", re.sub(r" +([.,;:)\]])(?!\d)", r"\1", text)).strip()


def _converted(latex: str) -> str:
    try:
        text: str = _CONVERTER.nodelist_to_text(_Walker(latex, latex_context=_PARSER_DB).get_latex_nodes()[0])
    except (RecursionError, LookupError, AttributeError, TypeError, ValueError):
        # The converter expects arguments where a damaged file has none; the words are kept.
        return _COMMAND.sub(" ", latex)
    return text


MAX_ARCHIVE_BYTES = MAX_CONTAINER_BYTES // 2  # unpacked; held twice for a moment
MAX_MEMBERS = 10_000
_NEXT = "unpack it, and index the folder of each document"
_SOURCE_SUFFIXES = (".tex", ".ltx", ".latex", ".tex.gz")
_SIGNS_OF_TEXT = (b"\\begin{abstract}", b"\\abstract", b"\\maketitle")


def read_packed(data: bytes, doc_id: str, source: str) -> Document:
    """Read the one document of a LaTeX source.

    The main file is a complete document that no other file includes; of several, one with an abstract or a made
    title, and then the one with most text. The others are counted as left out.

    Raises:
        DocumentError: there is no LaTeX in it, it is damaged, or it is beyond the limits.
    """
    data = _without_gzip(data)
    suffix = suffix_of(data)
    if suffix == ".tar":
        return _read_archive(data, doc_id, source)
    if suffix != ".tex":
        raise DocumentError(
            f"it is neither a tar archive nor LaTeX, it looks like {suffix}; unpack it, or name it {suffix}.gz"
        )
    return read(data, doc_id, source)


def _without_gzip(data: bytes) -> bytes:
    if not data.startswith(GZIP):
        return data
    try:
        with cast(BinaryIO, gzip.GzipFile(fileobj=io.BytesIO(data))) as stream:
            return read_limited(stream, MAX_ARCHIVE_BYTES)
    except DocumentError as error:
        raise DocumentError(f"it unpacks to more than {MAX_ARCHIVE_BYTES:,} bytes; {_NEXT}") from error
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DocumentError(f"it is not a whole gzip file ({error}); fetch or pack it again") from error


def _read_archive(data: bytes, doc_id: str, source: str) -> Document:
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            folder = Members(dict(_files(archive)))
            mains = _main_files(folder)
            if not mains:
                raise DocumentError(
                    "it is a tar archive without a LaTeX document; unpack it, and name the documents in it"
                )
            latex = load(folder.read(mains[0]), mains[0], folder)
    except (tarfile.TarError, EOFError, RecursionError, ValueError) as error:
        raise DocumentError(f"it is a damaged tar archive ({error}); fetch or pack it again") from error
    return read_loaded(latex, doc_id, source, n_others=len(mains) - 1)


def _files(archive: tarfile.TarFile) -> Iterator[tuple[Path, Callable[[], BinaryIO]]]:
    """The regular files of an archive; not links, nor sparse files, which unpack to more than they hold."""
    for number, member in enumerate(archive):
        if number == MAX_MEMBERS:
            raise DocumentError(f"it has more than {MAX_MEMBERS:,} members; {_NEXT}")
        if member.isreg() and not member.issparse() and member.size <= MAX_DOCUMENT_BYTES:
            path = Path(posixpath.normpath(f"/{member.name.lstrip('/')}"))
            yield path, cast(Callable[[], BinaryIO], partial(archive.extractfile, member))


def _main_files(folder: Members) -> list[Path]:
    """The complete documents that no other includes, the main one first."""
    sources = [
        path
        for path in folder.files
        if path.name.lower().endswith(_SOURCE_SUFFIXES) and not any(part.startswith(".") for part in path.parts)
    ]
    whole = [path for path in sources if not is_fragment(path, folder)] or sources
    parts = {path: included_files(path, folder) for path in whole}
    included = {part for path, files in parts.items() for part in files if part != path}
    mains = [path for path in whole if path not in included] or whole
    sizes = {}
    for path in mains:
        text = [folder.read(path), *(folder.read(part) for part in parts[path] if part.name.endswith(_SOURCE_SUFFIXES))]
        sizes[path] = (any(mark in one for one in text for mark in _SIGNS_OF_TEXT), sum(map(len, text)))
    return sorted(mains, key=lambda path: (*(-value for value in sizes[path]), str(path)))
