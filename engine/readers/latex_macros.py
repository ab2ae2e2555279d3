"""Arguments, definitions and settings of LaTeX source, found in time linear in its length."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from engine.readers.latex_source import CODE_MARK

MAX_DEPTH = 40  # the converter is recursive; deeper groups lose their braces and keep their text

_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
_NESTING = re.compile(r"\\(?:begin|end)[ \t]*\{[^{}\\\n]{1,60}\}|\\.|[{}]|\$\$?", re.DOTALL)
_ENVIRONMENT = re.compile(r"\\(begin|end)[ \t]*\{(.*)\}", re.DOTALL)
_CLOSERS = {"}": "{", r"\)": r"\(", r"\]": r"\["}
_OPENERS = frozenset(_CLOSERS.values())
_ARGUMENT = re.compile(r"\\(?:[A-Za-z@]+|.)", re.DOTALL)
_BLANKS = re.compile(r"[ \t]*\n?[ \t]*")
_BRACKET = re.compile(r"\\.|[\[\]{}]", re.DOTALL)
_MAX_BRACKET_CHARS = 500  # of an optional argument
_MAX_HEAD_CHARS = 20_000  # over the columns of a page
_PARAMETERS = re.compile(r"(?:[^{}\\\n]|\\[^{}\n]){0,200}(?=\{)")
_PARENTHESES = re.compile(r"\([^()\n]{0,50}\)")
_LENGTH = r"[-+]?(?:\d{1,9}\.?\d{0,9}|\.\d{1,9})[ \t]*(?:(?:true)?(?:pt|em|ex|cm|mm|in|sp|pc|bp|mu|fill?)(?![A-Za-z]))?"
_LENGTHS = re.compile(
    rf"[ \t]*+=?[ \t]*+(?:{_LENGTH}|\\magstep(?:half|\d)|-?\\[A-Za-z@]{{1,40}})"
    rf"(?:[ \t]*(?:plus|minus)[ \t]*{_LENGTH}){{0,2}}"
)
_BOX_WIDTH = re.compile(rf"\s{{0,3}}(?:(?:to|spread)\s{{0,3}}(?:{_LENGTH}|[\d.]{{0,9}}\\[A-Za-z@]{{1,40}}))?")
_FONT = re.compile(
    rf"[ \t]*=[ \t]*[A-Za-z][\w-]{{0,40}}(?:[ \t]+(?:scaled[ \t]*(?:\\magstep\w{{1,4}}|\d{{1,5}})|at[ \t]*{_LENGTH}))?"
)
_PATTERNS = {"p": _PARAMETERS, "(": _PARENTHESES, "d": _LENGTHS, "t": _BOX_WIDTH, "f": _FONT}  # "t" is a box's width


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a command: `text[start:stop]` without its braces, and `end` after them."""

    start: int
    stop: int
    end: int


def closing_braces(text: str) -> dict[int, int]:
    """Map the offset of each opening brace to that of its closing brace; unclosed braces are left out."""
    closing: dict[int, int] = {}
    waiting: list[int] = []
    for match in _BRACE.finditer(text):
        if match.group() == "{":
            waiting.append(match.start())
        elif match.group() == "}" and waiting:
            closing[waiting.pop()] = match.start()
    return closing


def group_at(text: str, start: int, closing: Mapping[int, int]) -> Argument:
    """The group that opens at `start`; one that is never closed ends with its line."""
    stop = closing.get(start)
    if stop is not None:
        return Argument(start + 1, stop, stop + 1)
    stop = text.find("\n", start)
    stop = len(text) if stop < 0 else stop
    return Argument(start + 1, stop, stop)


def arguments(text: str, start: int, signature: str, closing: Mapping[int, int]) -> Iterator[Argument]:
    """Find the arguments after a command, until one is missing.

    Args:
        text: LaTeX source.
        start: one past the command.
        signature: one letter for each argument: "*" a star, "o" an optional argument, "k" one of options with a
            title, "m" a group or a command, "b" or "g" a group, "p" the parameters of `\\def`, "=" an equals sign, "l"
            a command or a character, "(" text in parentheses, "d" a length that is assigned.
            A missing "m", "p", "l" or "d" ends the list; any other is empty.
        closing: the result of `closing_braces`.
    """
    for kind in signature:
        found = _argument(text, start, kind, closing)
        if found is None:
            if kind in "mbpld":
                return
            found = Argument(start, start, start)
        yield found
        start = found.end


def commands(
    text: str, pattern: re.Pattern[str], signatures: Mapping[str, str]
) -> Iterator[tuple[re.Match[str], list[Argument]]]:
    """The commands that have all arguments of their signatures and are not inside the last one; group 1 is the name."""
    closing, start = closing_braces(text) if pattern.search(text) else {}, 0
    for match in pattern.finditer(text) if closing else ():
        signature = signatures.get(match[1], "") if match.start() >= start else ""
        found = list(arguments(text, match.end(), signature, closing))
        if found and len(found) == len(signature):
            yield match, found
            start = found[-1].end


def _argument(text: str, start: int, kind: str, closing: Mapping[int, int]) -> Argument | None:
    if kind in _PATTERNS:
        match = _PATTERNS[kind].match(text, start)
        return Argument(start, match.end(), match.end()) if match else None
    blanks = _BLANKS.match(text, start)
    start = blanks.end() if blanks else start
    first = text[start : start + 1]
    if kind in "*=":
        return Argument(start, start + 1, start + 1) if first == kind else None
    if kind in "ok":
        return _optional(text, start, closing) if first == "[" else None
    if first == "{" and start in closing:
        return group_at(text, start, closing)
    if kind in "bg":
        return None
    command = _ARGUMENT.match(text, start)
    if command is not None:
        return Argument(start, command.end(), command.end())
    return Argument(start, start + 1, start + 1) if kind == "l" and first else None


def _optional(text: str, start: int, closing: Mapping[int, int], most: int = _MAX_BRACKET_CHARS) -> Argument | None:
    place, depth, limit = start, 0, start + most
    while (match := _BRACKET.search(text, place, limit)) is not None:
        place, token = match.end(), match.group()
        if token == "}":
            return None
        if token == "{":
            if match.start() not in closing:
                return None
            place = closing[match.start()] + 1
        depth += {"[": 1, "]": -1}.get(token, 0)
        if token == "]" and depth == 0:
            return Argument(start + 1, match.start(), place)
    return None


def balanced(text: str) -> str:
    """Leave out braces, `\\begin`, `\\end` and formula delimiters that have no partner or nest too deeply.

    Where a group and an environment cross each other, the converter retries, which takes exponential time.
    """
    found = list(_NESTING.finditer(text))
    dropped = set(_unpaired([match.group() for match in found]))
    parts, start = [], 0
    for number in sorted(dropped):
        parts.append(_ENDS_IN_COMMAND.sub(_closed, text[start : found[number].start()]))
        start = found[number].end()
    return "".join([*parts, text[start:]])


def _closed(command: re.Match[str]) -> str:
    """A command that does not swallow the letters behind it."""
    return " " if command.group() in (r"\begin", r"\end") else f"{command.group()}{{}}"


def _unpaired(tokens: list[str]) -> Iterator[int]:
    """Numbers of the tokens that have no partner, or that nest too deeply."""
    waiting: list[tuple[int, str]] = []
    n_waiting: Counter[str] = Counter()
    for number, token in enumerate(tokens):
        opens, closes = _roles(token, waiting[-1][1] if waiting else "")
        if opens:
            waiting.append((number, opens))
            n_waiting[opens] += 1
        elif closes and not n_waiting[closes]:
            yield number
        elif closes:
            while True:
                opener, name = waiting.pop()
                n_waiting[name] -= 1
                if name == closes:
                    break
                yield opener
            if len(waiting) >= MAX_DEPTH:
                yield from (opener, number)
    yield from (number for number, _ in waiting)


def _roles(token: str, innermost: str) -> tuple[str, str]:
    """The opener that a token is, and the opener that it closes; "" for none."""
    if token in _CLOSERS:
        return "", _CLOSERS[token]
    if token in _OPENERS:
        return token, ""
    if token.startswith("$"):
        return ("", token) if token == innermost else (token, "")
    environment = _ENVIRONMENT.fullmatch(token)
    if environment is None:
        return "", ""
    name = rf"\begin{{{environment[2]}}}"
    return (name, "") if environment[1] == "begin" else ("", name)


_ENVIRONMENT_NAME = re.compile(r"\{[^{}\\\n]{1,60}\}")
_MAX_ROUNDS = 3  # of expansion, for macros in macros
_COMMAND = re.compile(r"\\(?:([A-Za-z@]+)|.)", re.DOTALL)
_USE = re.compile(r"\\(?:([A-Za-z]+(?![A-Za-z@])|\d)|.)", re.DOTALL)
_PROGRAM = re.compile(r"\\(?:if|else|fi|csname|expandafter|futurelet|def|let|[A-Za-z]*@[A-Za-z])")
_ENDS_IN_COMMAND = re.compile(r"\\[A-Za-z]+\Z")


def _by_command(names: Mapping[str, str]) -> dict[str, str]:
    """The arguments of each command, of a table of the commands by their arguments in the letters of `arguments`."""
    return {name: signature for signature, listed in names.items() for name in listed.split()}


_DEFINITIONS = _by_command({
    "*moom":
        "newcommand renewcommand providecommand DeclareRobustCommand newrobustcmd renewrobustcmd newcommandx "
        "renewcommandx providecommandx",
    "*mm": "DeclareMathOperator",
    "lpm": "def gdef edef xdef",
    "l=l": "let futurelet",
    "*moobb": "newenvironment renewenvironment provideenvironment lstnewenvironment",
    "mmm":
        "NewDocumentCommand RenewDocumentCommand ProvideDocumentCommand DeclareDocumentCommand "
        "NewExpandableDocumentCommand RenewExpandableDocumentCommand ProvideExpandableDocumentCommand "
        "DeclareExpandableDocumentCommand",
    "mmbb": "NewDocumentEnvironment RenewDocumentEnvironment ProvideDocumentEnvironment DeclareDocumentEnvironment",
    "*momo": "newtheorem spnewtheorem",
    "omo": "declaretheorem",
    "omomo": "newmdtheoremenv",
    "ommmm": "newtcbtheorem NewTcbTheorem",
    "omoom": "newtcolorbox renewtcolorbox newtcblisting",
    "omm": "newminted newmintinline DefineVerbatimEnvironment",
    "lf": "font",
    "mmmm": "DeclareMathSymbol",
    "lmm": "DeclarePairedDelimiter",
    "lommm": "DeclarePairedDelimiterX",
    "mmmmmm": "DeclareMathAlphabet SetMathAlphabet DeclareFontShape",
    "m": "newif newdimen newskip newtoks newbox newcount newsavebox newlength",
    "mo": "newcounter theoremstyle",
    "mom": "newcolumntype",
})  # fmt: skip
_SIMPLE = {"*moom": (1, 4), "*mm": (1, 2), "lpm": (0, 2)}  # places of the macro's name and of its body

# Arguments that are not text; the text after them is kept.
_SETTINGS = _by_command({
    "omo":
        "documentclass usepackage RequirePackage PassOptionsToPackage LoadClass fontspec setmainfont setsansfont "
        "setmonofont setmathfont setCJKmainfont setCJKsansfont setCJKmonofont CJKfontspec",
    "lomo": "newfontfamily newCJKfontfamily setCJKfamilyfont",
    "omom": "babelfont",
    "mmmm": "usefont",
    "mm":
        "setlength addtolength settowidth settoheight setcounter addtocounter newglossaryentry DeclareAcronym "
        "markboth fontsize addtocontents numberwithin icmlauthor list",
    "omm": "DeclareSIUnit DeclareSIPrefix rule",
    "ommm": "newacronym newabbreviation definecolor colorlet",
    "mom": "acrodef",
    "*mo": "captionof",
    "mmm": "addcontentsline specialrule longnewglossaryentry rowcolors",
    "*mommm": "titleformat titlespacing",
    "*oom":
        "hypersetup lstset geometry pagestyle thispagestyle pagenumbering graphicspath markright captionsetup sisetup "
        "usetikzlibrary tikzset pgfplotsset hyphenation bibliography bibliographystyle addbibresource nobibliography "
        "input include subfile subfileinclude label vspace hspace includegraphics color pagecolor phantom vphantom "
        "plotone epsfig psfig epsfbox epsffile epsscale tablewidth tablecolumns tabletypesize "
        "hphantom cline enlargethispage textcolor colorbox scalebox rotatebox crefname shorttitle Title "
        "Author icmltitle icmltitlerunning AuthorNames shortauthors orcid orcidlink email received title author date "
        "titlerunning subtitle authorrunning linespread printbibliography thanksref texorpdfstring cellcolor rowcolor "
        "includeonly glsadd index sindex glossary href hypertarget hyperlink adjustbox usebox orcidID ead tnoteref "
        "corref fnref",
    "o": "tnotetext cortext fntext footnotemark linebreak pagebreak addlinespace toprule midrule bottomrule",
    "m":
        "icmlaffiliation column includeversion excludeversion includecomment excludecomment CJKfamily fontfamily "
        "fontseries fontshape fontencoding hhline chaptermark sectionmark subsectionmark",
    "*mm": "plottwo import subimport resizebox fcolorbox multicolumn",
    "ooom": "parbox",
    "t": "hbox vbox vtop",
    "(oo": "makebox framebox tcbox todo",
    "moo": "raisebox",
    "((": "put rput",
    "*o": "caption",
    "om":
        "foreignlanguage foreignquote selectlanguage textlanguage st sout setdefaultlanguage setmainlanguage "
        "setotherlanguage setotherlanguages columncolor arrayrulecolor SetCell SetRow",
    "omolo": "multirow",
    "o(m": "cmidrule",
    "d":
        "magnification looseness parindent parskip hskip vskip kern mkern mskip penalty tolerance hbadness vbadness "
        "hfuzz vfuzz emergencystretch clubpenalty widowpenalty baselineskip hangindent hangafter textwidth textheight "
        "topmargin oddsidemargin evensidemargin columnsep tabcolsep abovedisplayskip belowdisplayskip hsize vsize "
        "pdfoutput voffset hoffset itemsep interlinepenalty exhyphenpenalty hyphenpenalty binoppenalty relpenalty "
        "overfullrule belowcaptionskip abovecaptionskip intextsep floatsep textfloatsep leftskip rightskip topskip",
    "":
        "maketitle tableofcontents listoffigures listoftables appendix centering newpage clearpage cleardoublepage "
        "noindent xspace makeatletter makeatother global long outer protect begingroup endgroup relax frontmatter "
        "mainmatter backmatter raggedright unskip ignorespaces balance sloppy allowdisplaybreaks selectfont "
        "hline verb lstinline newline saythanks pause hfill hfil hss enspace thinspace dotfill hrulefill",
})  # fmt: skip
_COLOURS = frozenset(["color", "textcolor"])  # between parts of a word, whose groups are no arguments
_SPACES = frozenset([
    "vspace", "hspace", "hskip", "vskip", "kern", "newpage", "clearpage", "linebreak", "pagebreak", "newline",
    "captionof", "hfill", "hfil", "hss", "enspace", "thinspace", "dotfill", "hrulefill",
])  # fmt: skip
_BREAKS = frozenset([
    "caption", "frametitle", "framesubtitle", "par", "bigskip", "medskip", "smallskip", "vfill", "tnotetext", "cortext",
    "fntext", "icmlaffiliation", "icmlkeywords", "column", "tcblower", "tcbline",
])  # fmt: skip

_WITH_HEAD = "omo"  # text over columns
# Environments of layout; both ends become paragraph breaks.
_LAYOUT = _by_command({
    "o":
        "figure table sidewaysfigure sidewaystable algorithm algorithmic tcolorbox mdframed small footnotesize "
        "scriptsize center landscape threeparttable flushleft flushright appendices document titlepage columns "
        "acronym @twocolumnfalse",
    "ooom": "minipage subfigure subtable",
    "oomo": "NiceTabular",
    "momo": "NiceTabularX",
    "tm": "tabu longtabu",
    "mm": "list",
    "omo": "multicols",
    "om":
        "tabular longtable supertabular adjustbox spacing otherlanguage hyphenrules color tblr longtblr column turn "
        "rotate subarray",
    "mom": "tabularx tabulary xltabular",
    "omm": "CJK adjustwidth",
    "((": "picture pspicture",
    "omom": "wrapfigure wraptable",
})  # fmt: skip
_LAYOUT |= {f"{name}*": signature for name, signature in _LAYOUT.items()} | {"tabular*": "mom"}


def without_columns(text: str) -> str:
    """Set the text in the brackets of `\\twocolumn`, which is over the columns, apart from the rest."""
    match = re.search(r"\\twocolumn\s{0,9}(?=\[)", text)
    head = _optional(text, match.end(), closing_braces(text), _MAX_HEAD_CHARS) if match else None
    if match is None or head is None:
        return text
    return f"{text[: match.start()]}\n\n{text[head.start : head.stop]}\n\n{text[head.end :]}"


def without_definitions(text: str, is_kept: Callable[[str], bool]) -> tuple[str, dict[str, Macro]]:
    """Remove the definitions; returns the rest and the macro of each name as last defined, "" for a program."""
    closing = closing_braces(text)
    cut, macros = _Cut(text), dict[str, Macro]()
    place = 0
    while (match := _COMMAND.search(text, place)) is not None:
        place, signature = match.end(), _DEFINITIONS.get(match[1] or "")
        if signature is None:
            continue
        found = list(arguments(text, place, signature, closing))
        is_theorem = signature in ("*momo", "omo", "omomo", "ommmm", "omoom")
        meanings = _theorem(text, signature, found) if is_theorem else _environment(text, signature, found)
        if match[1] == "let" and len(found) == len(signature):
            name, meant = (text[one.start : one.stop].removeprefix("\\") for one in (found[0], found[-1]))
            meanings = [(name, macros.get(meant, Macro(f"\\{meant}")))] if meant in macros or is_kept(meant) else []
        for name, macro in meanings or [_macro(text, signature, found)]:
            is_program = _PROGRAM.search(macro.body) is not None
            is_needed = not (is_program and (macro.signature or name.startswith(("begin{", "end{"))))
            if name and not is_kept(name) and CODE_MARK not in macro.body and is_needed:
                macros[name] = Macro("") if is_program else macro
        place = cut.leave_out(match.start(), found[-1].end if found else place)
    return cut.rest(), macros


@dataclass(frozen=True, slots=True)
class Macro:
    """A command of the author: its body, and its arguments in the letters of `arguments`."""

    body: str
    signature: str = ""
    defaults: tuple[str | None, ...] = ()  # of its optional arguments, in order
    delimiters: tuple[str, ...] = ()  # texts before its first and after each of its arguments, as `\\def` has them


def _environment(text: str, signature: str, found: list[Argument]) -> list[tuple[str, Macro]]:
    """The two ends of an environment of the author as macros; none where its arguments are no simple ones."""
    if not signature.endswith("bb") or len(found) < len(signature):
        return []
    parts = [text[one.start : one.stop].strip() for one in found[:-2]]
    parts += [text[one.start : one.stop] for one in found[-2:]]
    name = parts[0] if signature == "mmbb" else parts[1]
    if name == "abstract" or name in _LAYOUT:
        return [("", Macro(""))]
    macro = _of_xparse(parts[1], parts[2]) if signature == "mmbb" else _with_default(text, parts[4], found)
    ends = [(f"begin{{{name}}}", macro), (f"end{{{name}}}", Macro(parts[-1]))] if macro else []
    return [(end, replace(one, body=f"\n\n{one.body}" if end[0] == "b" else f"{one.body}\n\n")) for end, one in ends]


def _theorem(text: str, signature: str, found: list[Argument]) -> list[tuple[str, Macro]]:
    """The two ends of an environment for theorems, which begins with its printed name."""
    parts = [text[one.start : one.stop].strip() for one in found]
    if len(parts) < len(signature):
        return []
    title = _title_of(f"{parts[0]},{parts[2]}") if signature == "omo" else ""
    name = parts[1]
    if signature == "ommmm":  # each has a title and a label
        begin = Macro(f"\n\n{parts[2]} (#2). ", "ogg")
    elif signature == "omoom":  # a box, maybe with a title
        boxed = _with_default(text, _title_of(parts[4]), found)
        option = " #1" if boxed.defaults and "#1" not in boxed.body else ""
        begin = replace(boxed, body=f"\n\n{boxed.body}{option}\n\n", signature=boxed.signature.replace("o", "k"))
    else:
        shown = title or (name.capitalize() if signature == "omo" else parts[3])
        begin = Macro(f"\n\n{shown}\\IfValueT{{#1}}{{ (#1)}}. ", "k")
    return [(f"begin{{{name}}}", begin), (f"end{{{name}}}", Macro("\n\n"))]


def _title_of(options: str) -> str:
    """The title in a list of options; "" without one."""
    title = _TITLE_OPTION.search(options)
    return (title[1] or title[2]) if title else ""


def _of_xparse(letters: str, body: str) -> Macro | None:
    """A macro whose arguments are letters; None where these are others than usual."""
    found = _XPARSE.findall(letters)
    if _XPARSE.sub("", letters).strip():
        return None
    signature = "".join({"s": "*", "G": "g"}.get(letter, letter.lower()) for letter, _ in found if letter != "+")
    return Macro(
        body, signature, tuple(default if letter in "OG" else None for letter, default in found if letter in "oOgG")
    )


def _with_default(text: str, body: str, found: Sequence[Argument]) -> Macro:
    """A macro with as many arguments as the third one says; the first is optional where the fourth is its default."""
    number, default = (text[one.start : one.stop].strip() for one in found[2:4])
    n_arguments = int(number) if number.isdecimal() else 0
    has_default = found[3].end > found[3].start and text[found[3].start - 1] == "["
    return Macro(body, "o" * has_default + "m" * (n_arguments - has_default), (default,) if has_default else ())


def _macro(text: str, signature: str, found: list[Argument]) -> tuple[str, Macro]:
    """Name and meaning of a macro; "" for anything else."""
    parts = [text[one.start : one.stop].strip() for one in found]
    if signature == "mmm" and len(parts) == 3:
        of_letters = _of_xparse(parts[1], parts[2])
        is_named = of_letters is not None and re.fullmatch(r"\\[A-Za-z]+", parts[0])
        return (parts[0].lstrip("\\") if is_named else "", of_letters or Macro(""))
    if signature in ("lmm", "lommm") and len(parts) == len(signature):
        n_arguments = int(parts[1]) if signature == "lommm" and parts[1].isdecimal() else 1
        inside = _PARAMETER.sub(lambda match: f"#{int(match[1]) + 2}", parts[-1]) if signature == "lommm" else "#3"
        left, right = parts[1:] if signature == "lmm" else parts[2:4]
        return parts[0].lstrip("\\"), Macro(f"{left}{{{inside}}}{right}{{}}", "*o" + "m" * n_arguments)
    if signature not in _SIMPLE or len(parts) < len(signature):
        return "", Macro("")
    name, body = (parts[place] for place in _SIMPLE[signature])
    macro = Macro(body)
    if signature == "*moom" and parts[2]:
        macro = _with_default(text, body, found)
        of_places = dict(re.findall(r"(?:^|,)\s*(\d)=([^,]*)", parts[3]))  # of the package xargs
        if of_places:
            letters = "".join("o" if str(place) in of_places else "m" for place, _ in enumerate(macro.signature, 1))
            macro = Macro(body, letters, tuple(of_places[place] for place in sorted(of_places)))
    elif signature == "lpm" and parts[1]:
        delimiters = tuple(part.strip() for part in re.split(r"#\d", parts[1]))
        macro = Macro(body, "m" * (len(delimiters) - 1), delimiters=delimiters if any(delimiters) else ())
        name = name if "#" not in "".join(delimiters) else ""
    return (name[1:], macro) if re.fullmatch(r"\\(?:[A-Za-z]+|\d)", name) else ("", macro)


_XPARSE = re.compile(r"([moOsgG+])(?:\{([^{}]*)\})?")
_CONDITION = re.compile(r"\\If(Boolean|NoValue|Value|Blank)(TF|T|F)(?![A-Za-z])[ \t]*\{?#(\d)\}?")


def expanded(text: str, macros: Mapping[str, Macro]) -> str:
    """Replace macros by their bodies; stop before the text exceeds twice its length plus 10,000 characters."""
    limit = 2 * len(text) + 10_000
    for _ in range(_MAX_ROUNDS if macros else 0):
        closing = closing_braces(text) if any(macro.signature for macro in macros.values()) else {}
        parts, start, size, place = [], 0, len(text), 0
        while (match := _USE.search(text, place)) is not None:
            place = match.end()
            macro = macros.get(match[1] or "")
            if macro is None and match[1] in ("begin", "end") and (named := _ENVIRONMENT_NAME.match(text, place)):
                macro = macros.get(f"{match[1]}{named.group()}")
                place = named.end() if macro else place
            if macro is None:
                continue
            body, stop = _filled_in(text, place, macro, closing)
            size += len(body)
            if size > limit:
                return text
            parts += [text[start : match.start()], body]
            start = place = stop
        if not parts:
            break
        text = "".join([*parts, text[start:]])
    return text


def _filled_in(text: str, start: int, macro: Macro, closing: Mapping[int, int]) -> tuple[str, int]:
    """The body of a macro with its arguments, and where these end."""
    if not (macro.signature or macro.delimiters):
        stop = start + 2 if text.startswith("{}", start) else start
        return (f"{macro.body}{{}}" if _ENDS_IN_COMMAND.search(macro.body) else macro.body), stop
    if macro.delimiters:
        return _delimited(text, start, macro, closing)
    defaults = iter(macro.defaults)
    values: list[str | None] = []
    stop = start
    for kind, one in zip(macro.signature, arguments(text, start, macro.signature, closing), strict=False):
        is_given = one.end > stop or kind == "m"
        default = next(defaults, None) if kind in "okg" else None
        value = text[one.start : one.stop] if is_given else default
        values.append(_title_of(value) if kind == "k" and value and "=" in value else value)
        stop = max(stop, one.end)
    return _with_values(macro.body, values), stop


def _with_values(body: str, values: Sequence[str | None]) -> str:
    if "\\If" in body:
        body = _chosen(body, tuple(None if value is None else bool(value.strip()) for value in values))
    numbered = dict(enumerate(values, 1))
    return _PARAMETER.sub(lambda match: numbered.get(int(match[1])) or "", body)


@lru_cache
def _chosen(body: str, values: tuple[bool | None, ...]) -> str:
    """The body without the branches for other arguments; a value is None without its argument, False if blank."""
    for _ in range(_MAX_CONDITIONS):
        match = _CONDITION.search(body)
        if match is None:
            break
        number = int(match[3])
        value = values[number - 1] if number <= len(values) else None
        is_true = {"Boolean": bool(value), "NoValue": value is None, "Value": value is not None, "Blank": not value}
        branches = list(arguments(body, match.end(), "m" * len(match[2]), closing_braces(body)))
        wanted = "T" if is_true[match[1]] else "F"
        text = "".join(
            body[one.start : one.stop] for one, letter in zip(branches, match[2], strict=False) if letter == wanted
        )
        body = body[: match.start()] + text + body[branches[-1].end if branches else match.end() :]
    return body


def _delimited(text: str, start: int, macro: Macro, closing: Mapping[int, int]) -> tuple[str, int]:
    """Like `_filled_in`, for arguments that end where a text follows; "" where it does not."""
    values: list[str | None] = []
    place = start + len(text[start : start + 9]) - len(text[start : start + 9].lstrip())
    if not text.startswith(macro.delimiters[0], place):
        return "", start
    place += len(macro.delimiters[0])
    for delimiter in macro.delimiters[1:]:
        if delimiter:
            stop = text.find(delimiter, place, place + _MAX_BRACKET_CHARS)
            after = stop + len(delimiter)
        else:
            argument = next(arguments(text, place, "m", closing), Argument(place, -1, -1))
            place, stop, after = argument.start, argument.stop, argument.end
        if stop < 0:
            return "", start
        values.append(text[place:stop].strip())
        place = after
    return _with_values(macro.body, values), place


_PARAMETER = re.compile(r"#([1-9])")
_MAX_CONDITIONS = 50  # of one macro


def without_settings(text: str, removed: list[str] | None = None) -> str:
    """Remove commands and arguments that are not text: lengths, colours, packages, layout; `removed` takes them."""
    closing = closing_braces(text)
    cut, place = _Cut(text), 0
    while (match := _COMMAND.search(text, place)) is not None:
        place, name = match.end(), match[1] or ""
        if name in ("begin", "end"):
            place = _leave_out_layout(cut, match, closing)
        elif name in _BREAKS:
            found = list(arguments(text, place, _SETTINGS.get(name, ""), closing))
            place = cut.leave_out(match.start(), found[-1].end if found else place, "\n\n")
        elif (signature := _SETTINGS.get(name)) is not None:
            found = list(arguments(text, place, signature, closing))
            if found or signature != "d":
                instead = " " if name in _SPACES else r"\relax " if name in _COLOURS else ""
                place = cut.leave_out(match.start(), found[-1].end if found else place, instead)
    if removed is not None:
        removed.extend(cut.removed)
    return cut.rest()


def _leave_out_layout(cut: _Cut, match: re.Match[str], closing: Mapping[int, int]) -> int:
    """Leave out one end of a layout environment; returns the offset at which to continue."""
    text = match.string
    named = next(arguments(text, match.end(), "m", closing), None)
    if named is None:
        return match.end()
    signature = _LAYOUT.get(text[named.start : named.stop].strip())
    if signature is None:
        return _keep_arguments(cut, match, named.end, closing)
    found = list(arguments(text, named.end, signature, closing)) if match[1] == "begin" else []
    title = " ".join(filter(None, (_title_of(text[one.start : one.stop]) for one in found)))
    if signature == _WITH_HEAD and len(found) == len(signature):
        title = text[found[-1].start : found[-1].stop]
    return cut.leave_out(match.start(), found[-1].end if found else named.end, f"\n\n{title}\n\n" if title else "\n\n")


def _keep_arguments(cut: _Cut, match: re.Match[str], start: int, closing: Mapping[int, int]) -> int:
    """Set the arguments of an unknown environment, such as the name of a theorem, apart from its text."""
    text, name = match.string, match.string[match.end() : start].strip("{} ")
    is_end = match[1] == "end"
    if name.rstrip("*") in _KNOWN_ENVIRONMENTS:
        return start
    beside = text[start : start + 1] if is_end else text[match.start() - 1 : match.start()]
    if beside not in (("}", "]") if is_end else ("{", "[")):
        cut.leave_out(start if is_end else match.start(), start if is_end else match.start(), "\n\n")
    if is_end or not text.startswith(("[", "{"), start):
        return start
    found = [one for one in arguments(text, start, "oommm", closing) if one.end > one.start]
    adjacent: list[Argument] = []
    for one in found:
        if text[one.start - 1] not in "[{" or one.start - 1 != (adjacent[-1].end if adjacent else start):
            break
        adjacent.append(one)
    if not adjacent:
        return start
    words = [text[one.start : one.stop] for one in (adjacent[:1] if name == "restatable" else adjacent)]
    shown = [part for part in (_title_of(one) or one for one in words) if not _NOT_WORDS.fullmatch(part.strip())]
    return cut.leave_out(start, adjacent[-1].end, f" {' '.join(shown)}\n\n" if shown else "")


_KNOWN_ENVIRONMENTS = frozenset([
    "array", "alignat", "alignedat", "gather", "aligned", "enumerate", "itemize", "description", "equation", "subarray",
    "align", "eqnarray", "multline", "split", "gathered", "cases", "dcases", "rcases", "matrix", "pmatrix", "bmatrix",
    "vmatrix", "Vmatrix", "Bmatrix", "smallmatrix", "displaymath", "math", "dmath", "flalign", "subequations", "dgroup",
])  # fmt: skip
_TITLE_OPTION = re.compile(
    r"(?:^|,)[ \t]*+(?:(?:frame)?title|caption|name|note)[ \t]*+=[ \t]*+(?:\{([^{}]{0,500}+)\}|([^,{}\]]{1,300}+))"
)
_NOT_WORDS = re.compile(
    r"[^\w]*|fragile|plain|allowframebreaks|shrink|squeeze|standout"
    r"|[\d.]*\\?[a-z]{0,12}width|-?[\d.]+ ?(?:pt|cm|mm|in|em|ex)?|[htbpH!]{1,5}|[clrpCLRs|@{}]{1,20}"
    r"|[^{}=]{0,80}=[^{}]{0,200}"
)


class _Cut:
    """A text from which stretches are removed, in order."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._parts: list[str] = []
        self.removed: list[str] = []
        self._start = 0
        self._is_line_start = True

    def leave_out(self, start: int, stop: int, put: str = "") -> int:
        """Leave out a stretch, with the line break after it if nothing else is on its line; returns its end."""
        text = self._text
        before = text[self._start : start]
        self._is_line_start = before.endswith("\n") or (self._is_line_start and not before)
        self.removed.append(text[start:stop])
        if self._is_line_start and text.startswith("\n", stop):
            stop += 1
        self._parts += [before, put]
        self._start = stop
        return stop

    def rest(self) -> str:
        """The text without the stretches that were left out."""
        return "".join([*self._parts, self._text[self._start :]])
