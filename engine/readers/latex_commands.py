"""Commands of LaTeX packages that stand for words: units, acronyms, and the branches of conditions."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice, pairwise

from engine.readers.latex_macros import commands
from engine.readers.left_out import COMMENT_WORDS, DELETED, READINGS, VARIANTS
from engine.text.headings import numeral

_NUMBERS = {
    **dict.fromkeys(["SI", "qty", "qtyproduct"], "omom"),
    **dict.fromkeys(["si", "unit", "num", "ang", "numlist", "numproduct"], "om"),
    "unitfrac": "omm",
    **dict.fromkeys(["SIrange", "qtyrange"], "ommm"),
    **dict.fromkeys(["numrange", "SIlist", "qtylist"], "omm"),
}
_NUMBER = re.compile(rf"\\({'|'.join(_NUMBERS)})(?=[\s\[{{])")
_UNITS = {
    "ampere": "A", "arcminute": "′", "arcsecond": "″", "becquerel": "Bq", "bit": "bit", "byte": "B", "candela": "cd",
    "celsius": "°C", "coulomb": "C", "dalton": "Da", "day": "d", "decibel": "dB", "degree": "°",
    "degreeCelsius": "°C", "electronvolt": "eV", "farad": "F", "gram": "g", "gray": "Gy", "hectare": "ha",
    "henry": "H", "hertz": "Hz", "hour": "h", "joule": "J", "kelvin": "K", "kilogram": "kg", "liter": "L",
    "litre": "L", "lumen": "lm", "lux": "lx", "meter": "m", "metre": "m", "minute": "min", "molar": "M",
    "mole": "mol", "newton": "N", "ohm": "Ω", "pascal": "Pa", "percent": r"\%", "radian": "rad", "second": "s",
    "siemens": "S", "sievert": "Sv", "steradian": "sr", "tesla": "T", "tonne": "t", "volt": "V",
    "watt": "W", "weber": "Wb",
}  # fmt: skip
_PREFIXES = {
    "pico": "p", "nano": "n", "micro": "µ", "milli": "m", "centi": "c", "deci": "d", "deca": "da", "hecto": "h",
    "kilo": "k", "mega": "M", "giga": "G", "tera": "T", "peta": "P",
}  # fmt: skip
_POWERS = {"squared": "^2", "cubed": "^3"}
_POWERS_BEFORE = {"square": "^2", "cubic": "^3"}
_MICRO, _OHM = re.compile(r"u(?=(?:[sgmlLAVWJFHN]|mol)$)"), re.compile(r"(?<=^[mkMG])ohm$")
_ERROR = re.compile(r"\s*(?:\+-|\\pm(?![A-Za-z]))\s*")
_EXPONENT = re.compile(r"(?<=[\d)])[eEdD]([+-]?\d+)\b")
_NEW_UNIT = re.compile(r"\\DeclareSIUnit(?:\[[^\]]{0,80}\])?\s{0,9}\{?\\([A-Za-z]+)\}?\s{0,9}\{([^{}]{1,60})\}")
_UNIT_PART = re.compile(r"\\([A-Za-z]+)(?:\{([^{}]{0,20})\})?|[^\\]+|\\.")
_ACRONYMS = {  # commands that define one, and their arguments
    **dict.fromkeys(["newacronym", "newabbreviation"], "ommm"),
    **dict.fromkeys(["newglossaryentry", "DeclareAcronym"], "mm"),
    "longnewglossaryentry": "mmm",
    **dict.fromkeys(["acrodef", "acro", "newacro"], "mom"),
}
_ACRONYM = re.compile(rf"\\({'|'.join(_ACRONYMS)})\*?(?=[\s\[{{])")
_KEY = re.compile(
    r"(?:^|,)\s*+(name|plural|short|long|description)\s*+=\s*+(?:\{((?:[^{}]|\{[^{}]{0,200}\}){0,1000}+)\}|([^,{}]{1,300}+))"
)
_GLOSSED = re.compile(
    r"\\(?P<name>[gG]ls(?:xtr(?:short|long|full)|entry(?:short|long|full|name|desc|text)|symbol|name|desc)?(?P<pl>pl)?|GLS"
    r"|[aA]cr(?:short|long|full)(?P<p>pl)?|[aA]c(?:[slf]|sp|lp|fp|p)?)\*?[ \t]*+\{(?P<label>[^{}\n]{1,100}+)\}"
)
_PRINTED = re.compile(r"\\print(?:noidx|unsrt)?(?:glossar(?:y|ies)|acronyms?)(?![A-Za-z])(?:\[[^\[\]]{0,200}\])?")
_CONDITION = re.compile(r"\\(?P<token>if[A-Za-z@]*|else|or|fi)(?![A-Za-z@])")
_WITH_ARGUMENTS = re.compile(r"iff|ifthenelse|ifstr\w+|ifdef(?:empty|string)|ifblank|ifcs\w*|iftoggle|ifbool|ifnumcomp")
_TWO_TOKENS = re.compile(r"(?:\s{0,9}(?:\\[A-Za-z@]+|\\?.)){2}[ \t]{0,9}")
_TOKEN = re.compile(r"\\[A-Za-z@]+|\\?\S")
_VALUE = r"\s{0,9}-?(?:\\(?:value|thepage|the)?[A-Za-z@]{0,40}(?:\{[^{}]{0,40}\})?|[\d.]{1,9}[a-z]{0,2})"
_COMPARED = {
    **dict.fromkeys(["ifx", "if", "ifcat"], _TWO_TOKENS),
    **dict.fromkeys(["ifnum", "ifdim"], re.compile(rf"{_VALUE}\s{{0,9}}[<=>]{_VALUE}\s{{0,3}}")),
    **dict.fromkeys(["ifcase", "ifodd"], re.compile(rf"{_VALUE}\s{{0,3}}")),
    "ifdefined": re.compile(r"\s{0,9}\\[A-Za-z@]+[ \t]{0,9}"),
    "ifcsname": re.compile(r"[^\\]{0,80}\\endcsname[ \t]{0,9}"),
}
_DEFINED = re.compile(r"\\(?:[egx]?def|let|(?:new|renew|provide)command\*?\s{0,3}\{?)\s{0,3}(\\[A-Za-z@]+)")
_BODY = re.compile(
    r"\\(?:[egx]?def|(?:new|renew|provide)command\*?)\s{0,3}\{?(\\[A-Za-z@]+)\}?\s{0,3}\{([^{}]{0,300})\}"
)
_UNDEFINED, _EMPTY = frozenset([r"\undefined", r"\@undefined"]), {r"\empty": "", r"\@empty": ""}
_MAX_CONDITIONS = 100  # of one author
_NEW_CONDITION = re.compile(r"\\newif\s{0,9}\\if([A-Za-z@]+)")
_NEWIF = r"\newif"


_REVISIONS = {  # command: its arguments, which of them is text, and the reason to leave the others out
    **dict.fromkeys(["deleted", "del", "sout", "st", "xout", "DIFdel", "DIFdelFL", "remove", "cancel", "hcancel",
                     "bcancel", "xcancel", "textst", "strikeout"], ("ob", -1, DELETED)),
    **dict.fromkeys(["added", "DIFadd", "DIFaddFL"], ("ob", 1, DELETED)), "replaced": ("obb", 1, DELETED),
    **dict.fromkeys(["replace", "change"], ("obb", 2, DELETED)),
    "annote": ("obb", 1, COMMENT_WORDS), "comment": ("ob", -1, COMMENT_WORDS),
    **dict.fromkeys("ruby Ruby kana kanji jruby ltjruby aruby furigana xpinyin".split(), ("obb", 1, READINGS)),
    **dict.fromkeys(["ifthenelse", "iftoggle", "ifbool", "ifdef", "ifcsdef", "ifboolexpr"], ("obbb", 2, VARIANTS)),
    **dict.fromkeys(["ifundef", "ifcsundef", "ifblank", "ifstrempty", "ifdefempty"], ("obbb", 3, VARIANTS)),
    **dict.fromkeys(["ifstrequal", "ifdefstrequal", "ifnumequal"], ("obbbb", 4, VARIANTS)),
}  # fmt: skip
_REVISION = re.compile(rf"\\({'|'.join(_REVISIONS)})(?=[\s\[{{])")


def without_revisions(text: str) -> tuple[str, Counter[str]]:
    """Take the text as it was last revised, without the readings above words; returns it and the words left out."""
    counts = Counter[str]()
    is_revised = r"\add" in text  # else "del" is an operator of mathematics
    signatures = {name: signature for name, (signature, *_) in _REVISIONS.items() if is_revised or name != "del"}
    parts, start = [], 0
    for match, found in commands(text, _REVISION, signatures):
        _, at, reason = _REVISIONS[match[1]]
        parts.append(text[start : match.start()])
        start = found[-1].end
        for number, one in enumerate(found[1:], 1):
            if number == at:
                shown = text[one.start : one.stop]
                parts.append(shown.replace("|", "") if reason == READINGS else shown)
            else:
                counts[reason] += len(text[one.start : one.stop].split())
        if at < 0 and parts[-1][-1:].isspace():
            start += len(text[start:]) - len(text[start:].lstrip(" "))
    return "".join([*parts, text[start:]]), counts


def with_units(text: str) -> str:
    """Write the numbers and units of siunitx as they look."""
    units = _UNITS | dict(_NEW_UNIT.findall(text))
    parts, start = [], 0
    for match, found in commands(text, _NUMBER, _NUMBERS):
        before, *words = (text[one.start : one.stop].strip() for one in found)
        values = [value for value, kind in zip(words, _NUMBERS[match[1]][1:], strict=True) if kind == "m"]
        parts.append(text[start : match.start()])
        parts.append(_measured(match[1], before if "=" not in before else "", values, units))
        start = found[-1].end
    return "".join([*parts, text[start:]])


def _measured(name: str, before: str, values: list[str], units: Mapping[str, str]) -> str:
    """A quantity as it looks; `before` is the number that the package units has in brackets."""
    if name == "unitfrac":
        return f"{before} {values[0]}/{values[1]}".strip()
    if name in ("si", "unit"):
        return f"{before} {_unit(values[0], units)}".strip()
    if name == "ang":
        return "".join(f"{value}{sign}" for value, sign in zip(values[0].split(";"), "°′″", strict=False) if value)
    numbers = [
        _EXPONENT.sub(r" × 10^\1", _ERROR.sub(" ± ", number))
        for number in (values if name.startswith("num") else values[:-1])
    ]
    shown = "–".join(numbers) if name.endswith("range") else numbers[0].replace(";", ", ")
    return shown if name.startswith("num") else f"{shown} {_unit(values[-1], units)}"


def _unit(source: str, units: Mapping[str, str]) -> str:
    """The symbol of a unit: "L/s" for the commands of litre, per and second."""
    symbol, is_open, power = "", True, ""  # whether the next symbol continues the last one
    for match in _UNIT_PART.finditer(source):
        name = match[1]
        if name is None:
            symbol += match.group().replace("~", " ").replace("{", "").replace("}", "").strip()
        elif name == "per":
            symbol, is_open = f"{symbol or '1'}/", True
        elif name in ("tothe", "raiseto") or name in _POWERS:
            symbol += _POWERS.get(name, f"^{match[2] or ''}")
        elif name in _POWERS_BEFORE:
            power = _POWERS_BEFORE[name]
        else:
            symbol += ("" if is_open else " ") + _PREFIXES.get(
                name, units.get(name, _OHM.sub("Ω", _MICRO.sub("µ", name)))
            )
            is_open = name in _PREFIXES
            if not is_open:
                symbol, power = symbol + power, ""
    return symbol


def with_acronyms(text: str) -> str:
    """Write out acronyms: the long form with the short one where it is first used, then the short one."""
    known = _acronyms(text)
    used: set[str] = set()

    def write(match: re.Match[str]) -> str:
        label, name = match["label"].strip(), match["name"].lower()
        if label not in known:
            return match.group()
        short, long, plural, description = known[label]
        kind = name.removeprefix("glsxtr").removeprefix("glsentry").removeprefix("acr")
        is_first = label not in used
        used.add(label)
        is_plural = match["pl"] or match["p"] or name in ("acp", "acsp", "aclp", "acfp")
        if is_plural:
            short, long = plural or f"{short}s", long and f"{long}s"
        if kind.endswith("desc"):
            shown = description
        elif kind.startswith("long") or name in ("acl", "aclp"):
            shown = long or short
        else:
            is_short = kind.startswith("short") or name in ("acs", "acsp")
            is_full = kind.startswith("full") or name in ("acf", "acfp") or (is_first and not is_short)
            shown = f"{long} ({short})" if is_full and long else short
        return shown[:1].upper() + shown[1:] if match["name"][0].isupper() else shown

    if not known:
        return text
    entries = (": ".join(filter(None, (short, long, description))) for short, long, _, description in known.values())
    glossary = "\n\n".join([r"\section{Glossary}", *dict.fromkeys(entries), ""])
    first, *rest = _PRINTED.split(text)
    return _GLOSSED.sub(write, glossary.join([first, "".join(rest)]) if rest else text)


def _acronyms(text: str) -> dict[str, tuple[str, str, str, str]]:
    """Short form, long form, plural and description of each acronym by its label; "" for one that is not given."""
    known: dict[str, tuple[str, str, str, str]] = {}
    for match, places in commands(text, _ACRONYM, _ACRONYMS):
        found = [text[one.start : one.stop].strip() for one in places]
        if _ACRONYMS[match[1]] == "mom":
            known[found[0]] = found[1] or found[0], found[2], "", ""
        elif _ACRONYMS[match[1]] == "ommm":
            known[found[1]] = found[2], found[3], "", ""
        else:
            keys = {key[1]: (key[2] or key[3]).strip() for key in _KEY.finditer(found[1])}
            short, description = keys.get("name") or keys.get("short", ""), [keys.get("description", ""), *found[2:]]
            known[found[0]] = short, keys.get("long", ""), keys.get("plural", ""), "".join(description)
    return known


def without_branches(text: str) -> tuple[str, int]:
    r"""Leave out the branches that TeX does not take, as far as that is known; returns the rest and their words.

    `\ifx` compares two commands of the document; a condition of the author is as it was last set, or false. Of any
    other condition, the first branch is taken.
    """
    own = {name: _settings(text, name) for name in islice(_NEW_CONDITION.findall(text), _MAX_CONDITIONS)}
    is_asked = r"\ifdefined" in text or r"\ifx" in text
    bodies = {name: "" for name in _DEFINED.findall(text)} if is_asked else {}
    bodies |= _EMPTY | dict(_BODY.findall(text)) if is_asked else {}
    waiting: list[tuple[str, list[tuple[int, int]]]] = []  # the open conditions: names, and what is around branches
    cuts: list[tuple[int, int]] = []
    n_words = 0
    for match in _CONDITION.finditer(text):
        token = match["token"]
        if token in ("else", "or") and waiting:
            waiting[-1][1].append(match.span())
        elif token == "fi" and waiting:
            name, borders = waiting.pop()
            borders.append(match.span())
            condition = text[slice(*borders[0])]
            settings = own.get(name.removeprefix("if"))
            is_true = _is_true(name, condition, bodies) if settings is None else _is_set(settings, borders[0][0])
            case = re.search(r"\d+", condition) if name == "ifcase" else None
            taken = min(int(case.group()), len(borders) - 2) if case else not is_true
            for number, ((_, start), (stop, _)) in enumerate(pairwise(borders)):
                if number != taken:
                    n_words += len(text[start:stop].split())
                    cuts.append((start, stop))
            cuts += borders
        elif token not in ("else", "or", "fi") and not _WITH_ARGUMENTS.fullmatch(token):
            if text.endswith(_NEWIF, max(0, match.start() - len(_NEWIF)), match.start()):
                continue
            compared = _COMPARED.get(token)
            condition_end = compared.match(text, match.end()) if compared else None
            waiting.append((token, [(match.start(), (condition_end or match).end())]))
    parts, place = [], 0
    for start, stop in sorted(cuts):
        if start >= place:
            parts.append(text[place:start])
        place = max(place, stop)
    return "".join([*parts, text[place:]]), n_words


def _settings(text: str, name: str) -> list[tuple[int, bool]]:
    """Where a condition of the author becomes true or false, in order."""
    found = re.finditer(rf"\\{re.escape(name)}(true|false)(?![A-Za-z@])", text)
    return [(match.start(), match[1] == "true") for match in found]


def _is_set(settings: Sequence[tuple[int, bool]], place: int) -> bool:
    at = bisect_right(settings, place, key=lambda setting: setting[0])
    return at > 0 and settings[at - 1][1]


def _is_true(name: str, condition: str, bodies: Mapping[str, str]) -> bool:
    """Whether a condition is true; `bodies` has those of the commands that the document defines, "" where complex."""
    if name == "ifdefined":
        return condition.removeprefix(r"\ifdefined").strip() in bodies
    if name == "ifx":
        first, second = [*_TOKEN.findall(condition.removeprefix(r"\ifx")), "", ""][:2]
        if undefined := {first, second} & _UNDEFINED:
            other = second if first in undefined else first
            return other not in bodies and not other.startswith(r"\pdf")
        return first == second or (bodies.get(first, first) == bodies.get(second, second) and second in bodies)
    numbers = re.fullmatch(r"\\if(?:num|dim)\s*(-?\d+)\s*([<=>])\s*(-?\d+)\s*", condition)
    if numbers is not None:
        first, second = int(numbers[1][:9]), int(numbers[3][:9])
        return {"<": first < second, "=": first == second, ">": first > second}[numbers[2]]
    return name != "iffalse"


_LIST = re.compile(
    r"\\begin\{(?P<kind>\w{0,20}(?:enum|enumerate|itemize|description|list))\*?\}(?:\[(?P<options>[^\]\n]{0,200})\])?"
    r"|\\(?P<end>end)\{\w{0,20}(?:enum|enumerate|itemize|description|list)\*?\}|\\setcounter\{enumi{1,3}v?\}\{(?P<value>\d{1,4})\}"
    r"|\\item(?![A-Za-z])(?!\s{0,9}\[)(?:[ \t]{0,9}\n(?![ \t]*\n))?"
)
_LABELS = ("1.", "(a)", "i.", "A.")  # of the four levels of lists
_LABEL = re.compile(
    r"([^\s\\=,{}]{0,5})(?:\\(arabic|alph|Alph|roman|Roman)\*?|(?<![\w=])([1aAiI])(?![\w=]))([^\s,\\{}\w]{0,3})"
)
_FIRST = {"arabic": "1", "alph": "a", "Alph": "A", "roman": "i", "Roman": "I"}
_START = re.compile(r"start=(\d{1,4})")


def with_item_numbers(text: str) -> str:
    """Write the numbers of the items of numbered lists into their brackets."""
    forms: list[str] = []  # of each open list; "" without numbers
    numbers: list[int] = []
    ended: dict[int, int] = {}  # the next number of the last list at each depth, which another one may resume

    def write(match: re.Match[str]) -> str:
        if match["kind"]:
            options = match["options"] or ""
            label = _LABEL.search(options) or _LABEL.search(_LABELS[min(3, sum(map(bool, forms)))])
            first = re.search(_START, options)
            is_numbered = label is not None and "enum" in match["kind"]
            forms.append(f"{label[1]}{{}}{label[4]}\0{_FIRST.get(label[2], label[3])}" if is_numbered and label else "")
            numbers.append(int(first[1]) if first else ended.get(len(numbers), 1) if "resume" in options else 1)
        elif match["end"]:
            ended.update({len(numbers) - 1: number for number in numbers[-1:]})
            del forms[-1:], numbers[-1:]
        elif match["value"]:
            numbers[-1:] = [int(match["value"]) + 1] if numbers else []
        elif forms and forms[-1]:
            numbers[-1] += 1
            form, _, sign = forms[-1].partition("\0")
            return rf"\item[{form.format(numeral(numbers[-1] - 1, sign))}] "
        return match.group()

    return _LIST.sub(write, text) if "enum" in text else text


_TABS = re.compile(
    r"(\\halign[^{}]{0,40}\{)(?:[^{}]|\{[^{}]{0,80}\}){0,300}?\\cr(?![A-Za-z])|\\settabs\s?\d+\s?\\columns"
)
_ROW = re.compile(r"\\\+((?:[^\n\\]|\\(?!\+|cr(?![A-Za-z])))*+)\\cr(?![A-Za-z])")


_TABBING = re.compile(r"(?=\\(?:begin|end)\{tabbing\})")
_TAB_STOP = re.compile(r"\\(?:[=><+-]|kill(?![A-Za-z]))")


def without_tabs(text: str) -> str:
    """Leave out templates of columns in plain TeX, and stops of tabs, which look like accents."""
    parts = _TABBING.split(text) if r"\begin{tabbing}" in text else [text]
    text = "".join(_TAB_STOP.sub(" ", part) if part.startswith(r"\begin{tabbing}") else part for part in parts)
    is_tabbed = r"\halign" in text or r"\settabs" in text
    return _ROW.sub(r"\n\n\1\n\n", _TABS.sub(r"\1", text)) if is_tabbed else text


_REPEATED_ROWS = re.compile(
    r"(?<=\\endfirsthead)(?:(?!\\end(?:head|foot|\{)).){0,3000}(?=\\endhead)"
    r"|(?<=\\endhead)(?:(?!\\end(?:foot|\{)).){0,3000}(?=\\endfoot)",
    re.DOTALL,
)


def without_repeated_rows(text: str) -> tuple[str, int]:
    """Leave out the heads and feet of a long table on all pages but the first; returns the rest and their number."""
    return _REPEATED_ROWS.subn(" ", text) if r"\endhead" in text else (text, 0)


_GERMAN = re.compile(  # and Dutch
    r"\\usepackage\s{0,9}(?:\[[^\]]{0,200}(?:german|austrian|dutch)[^\]]{0,200}\]\s{0,9}\{babel\}|\{n?german\})"
    r"|\\documentclass\s{0,9}\[[^\]]{0,200}(?:german|austrian|dutch)[^\]]{0,200}\](?=(?s:.){0,20000}\{babel\})"
    r"|babelshorthands\s{0,3}(?:=\s{0,3}true)?\s{0,3}\]\{german\}"
)
_SHORTHAND = re.compile(r'(?<!\\)"(c(?=k)|([flmnprt])(?=\2)|[aeiouAEIOUsz=~|"\'`<>-])')
_SHORTHANDS = dict(zip("aeiouAEIOUcflmnprtsz=~|\"'`<>-", (*"äëïöüÄËÏÖÜcflmnprtßß--", "", "", *"“„«»", ""), strict=True))


def with_shorthands(text: str) -> str:
    """Write the shorthands for German of babel as the letters and signs that they are."""
    return _SHORTHAND.sub(lambda match: _SHORTHANDS[match[1]], text) if _GERMAN.search(text) else text


_OVERLAY = re.compile(
    r"(\\(?:begin\{\w{1,40}\*?\}|[A-Za-z]{1,40}\*?))<(?:[\w,+.|@:\-]|\\value\{\w{1,20}\}){1,40}>(?:\[frame\])?"
)


def without_overlays(text: str) -> str:
    """Leave out the numbers of the slides on which a presentation shows a text."""
    return _OVERLAY.sub(r"\1", text) if "<" in text and ("beamer" in text or r"\begin{frame}" in text) else text


_NAMED_REFERENCE = re.compile(r"\\(cref|Cref|autoref|Autoref|nameref)\*?[ \t]*\{([^{}]{1,300})\}")
_REFERENT = re.compile(
    r"\\begin\{(?P<environment>[A-Za-z]{1,40})\*?\}|\\(?:sub)*(?P<part>section|chapter)(?![A-Za-z])"
    r"(?:\*?(?:\[[^\[\]]{0,200}\])?\{(?P<title>[^{}]{1,300})\})?|\\label\{(?P<label>[^{}]{1,200})\}"
)
_ANY_REFERENCE = re.compile(r"\\[A-Za-z]{0,12}[rR]ef[a-z]{0,9}\*?[ \t]*\{[^{}]{1,300}\}")
_ARGUMENT = re.compile(r"[{=,]\s{0,9}([^{}=,\[\]\n]{1,300}+)(?=[},\]])")  # where a command or an option can set a label
_THEOREM = re.compile(r"\\newtheorem\*?\{([A-Za-z]{1,40})\}(?:\[\w{1,40}\])?\{([^{}]{1,40})\}")
_REFERENTS = {
    **{name: name for name in ("figure", "table", "equation", "algorithm", "section", "chapter", "theorem", "lemma")},
    **dict.fromkeys(["align", "gather", "multline", "eqnarray", "subequations"], "equation"),
    "subfigure": "figure", "wrapfigure": "figure", "longtable": "table", "lstlisting": "listing",
}  # fmt: skip


def with_named_references(text: str) -> tuple[str, int]:
    """Write what a reference names, as cleveref does: "figure" or "sections"; numbers are left out.

    A label that is nowhere is "??", as LaTeX prints it; the second value counts these.
    """
    if not _NAMED_REFERENCE.search(text):
        return text, 0
    names = _REFERENTS | {name: shown.lower() for name, shown in _THEOREM.findall(text)}
    known = {label.strip() for label in _ARGUMENT.findall(_ANY_REFERENCE.sub("", text))}
    name, title, named, n_undefined = "", "", dict[str, tuple[str, str]](), 0
    for match in _REFERENT.finditer(text):
        if match["label"]:
            named[match["label"]] = name, title
        else:
            name = names.get(match["environment"] or match["part"], name)
            title = match["title"] or title

    def write(match: re.Match[str]) -> str:
        nonlocal n_undefined
        labels = [label.strip() for label in match[2].split(",")]
        n_undefined += (n_missing := sum(label not in known for label in labels))
        if n_missing == len(labels):
            return "??"
        kind, title = named.get(labels[0], ("", ""))
        if match[1] == "nameref":
            return title or match.group()
        kind = f"{kind}s" if kind and len(labels) > 1 else kind
        return f"{kind if match[1] == 'cref' else kind.capitalize()}~{match.group()}" if kind else match.group()

    return _NAMED_REFERENCE.sub(write, text), n_undefined
