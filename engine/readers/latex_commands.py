"""Commands of LaTeX packages that stand for words: units, acronyms, and the branches of conditions."""

from __future__ import annotations

import re
from collections import Counter

from engine.readers.latex_macros import arguments, closing_braces
from engine.readers.left_out import DELETED, READINGS

_NUMBERS = {
    **dict.fromkeys(["SI", "qty"], "omom"),
    **dict.fromkeys(["si", "unit", "num", "ang", "numlist"], "om"),
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
    "siemens": "S", "sievert": "Sv", "steradian": "sr", "tesla": "T", "tonne": "t", "um": "µm", "volt": "V",
    "watt": "W", "weber": "Wb",
}  # fmt: skip
_PREFIXES = {
    "pico": "p", "nano": "n", "micro": "µ", "milli": "m", "centi": "c", "deci": "d", "deca": "da", "hecto": "h",
    "kilo": "k", "mega": "M", "giga": "G", "tera": "T", "peta": "P",
}  # fmt: skip
_POWERS = {"squared": "^2", "cubed": "^3"}
_UNIT_PART = re.compile(r"\\([A-Za-z]+)(?:\{([^{}]{0,20})\})?|[^\\]+|\\.")
_ACRONYM = re.compile(r"\\(?:newacronym|newabbreviation|acrodef)(?=[\s\[{])")
_GLOSSARY = re.compile(r"\\newglossaryentry(?=[\s{])")
_ENTRY = re.compile(r"(?:^|,)\s*+name\s*+=\s*+(?:\{([^{}]{0,300}+)\}|([^,{}]{1,300}+))")
_GLOSSED = re.compile(
    r"\\(?P<name>[gG]ls(?:pl)?|GLS|acr(?:short|long|full)|ac[slfp]?)\*?[ \t]*+\{(?P<label>[^{}\n]{1,100}+)\}"
)
_CONDITION = re.compile(r"\\(?P<token>if[A-Za-z@]*|else|fi)(?![A-Za-z@])")
_WITH_ARGUMENTS = re.compile(r"iff|ifthenelse|ifstr\w+|ifdef(?:empty|string)|ifblank|ifcs\w*|iftoggle|ifbool|ifnumcomp")
_TWO_TOKENS = re.compile(r"(?:\s{0,9}(?:\\[A-Za-z@]+|\\?.)){2}[ \t]{0,9}")
_NEW_CONDITION = re.compile(r"\\newif\s{0,9}\\if([A-Za-z@]+)")
_NEWIF = r"\newif"


_REVISIONS = {  # command: its arguments, which of them is text, and the reason to leave the others out
    **dict.fromkeys(["deleted", "sout", "st", "xout", "DIFdel", "DIFdelFL", "remove", "cancel"], ("om", -1, DELETED)),
    **dict.fromkeys(["added", "DIFadd", "DIFaddFL"], ("om", 1, DELETED)),
    **dict.fromkeys(["replaced", "change"], ("omm", 1, DELETED)),
    **dict.fromkeys(["ruby", "kanji", "jruby"], ("omm", 1, READINGS)),
}
_REVISION = re.compile(rf"\\({'|'.join(_REVISIONS)})(?=[\s\[{{])")


def without_revisions(text: str) -> tuple[str, Counter[str]]:
    """Take the text as it was last revised, without the readings above words; returns it and the words left out."""
    counts = Counter[str]()
    closing = closing_braces(text) if _REVISION.search(text) else {}
    parts, start = [], 0
    for match in _REVISION.finditer(text) if closing else ():
        signature, at, reason = _REVISIONS[match[1]]
        found = list(arguments(text, match.end(), signature, closing)) if match.start() >= start else []
        is_complete = len(found) == len(signature) and all(text[one.start - 1] == "{" for one in found[1:])
        if not is_complete:
            continue
        parts.append(text[start : match.start()])
        start = found[-1].end
        for number, one in enumerate(found[1:], 1):
            if number == at:
                parts.append(text[one.start : one.stop])
            else:
                counts[reason] += len(text[one.start : one.stop].split())
        if at < 0 and parts[-1][-1:].isspace():
            start += len(text[start:]) - len(text[start:].lstrip(" "))
    return "".join([*parts, text[start:]]), counts


def with_units(text: str) -> str:
    """Write the numbers and units of siunitx as they look."""
    closing = closing_braces(text) if _NUMBER.search(text) else {}
    parts, start = [], 0
    for match in _NUMBER.finditer(text) if closing else ():
        signature = _NUMBERS[match[1]]
        found = list(arguments(text, match.end(), signature, closing)) if match.start() >= start else []
        if len(found) == len(signature):
            values = [
                text[one.start : one.stop].strip() for one, kind in zip(found, signature, strict=True) if kind == "m"
            ]
            parts += [text[start : match.start()], _measured(match[1], values)]
            start = found[-1].end
    return "".join([*parts, text[start:]])


def _measured(name: str, values: list[str]) -> str:
    if name in ("si", "unit"):
        return _unit(values[0])
    if name == "ang":
        return "".join(f"{value}{sign}" for value, sign in zip(values[0].split(";"), "°′″", strict=False) if value)
    numbers = values if name.startswith("num") else values[:-1]
    shown = "–".join(numbers) if name.endswith("range") else numbers[0].replace(";", ", ")
    return shown if name.startswith("num") else f"{shown} {_unit(values[-1])}"


def _unit(source: str) -> str:
    """The symbol of a unit: "L/s" for the commands of litre, per and second."""
    symbol, is_open = "", True  # whether the next symbol continues the last one
    for match in _UNIT_PART.finditer(source):
        name = match[1]
        if name is None:
            symbol += match.group().replace("~", " ").replace("{", "").replace("}", "").strip()
        elif name == "per":
            symbol, is_open = f"{symbol or '1'}/", True
        elif name in ("tothe", "raiseto") or name in _POWERS:
            symbol += _POWERS.get(name, f"^{match[2] or ''}")
        else:
            symbol += ("" if is_open else " ") + _PREFIXES.get(name, _UNITS.get(name, name))
            is_open = name in _PREFIXES
    return symbol


def with_acronyms(text: str) -> str:
    """Write out acronyms: the long form with the short one where it is first used, then the short one."""
    known = _acronyms(text)
    used: set[str] = set()

    def write(match: re.Match[str]) -> str:
        label, name = match["label"].strip(), match["name"].lower()
        if label not in known:
            return match.group()
        short, long = known[label]
        is_first = label not in used
        used.add(label)
        if name in ("acrlong", "acl"):
            return long or short
        is_full = name in ("acrfull", "acf") or (is_first and name not in ("acrshort", "acs"))
        return f"{long} ({short})" if is_full and long else short

    return _GLOSSED.sub(write, text) if known else text


def _acronyms(text: str) -> dict[str, tuple[str, str]]:
    """Short and long form of each acronym by its label."""
    known: dict[str, tuple[str, str]] = {}
    for pattern, signature in ((_ACRONYM, "ommm"), (_GLOSSARY, "mm")):
        closing = closing_braces(text) if pattern.search(text) else {}
        for match in pattern.finditer(text) if closing else ():
            found = [text[one.start : one.stop].strip() for one in arguments(text, match.end(), signature, closing)]
            name = _ENTRY.search(found[1]) if len(found) == 2 else None
            if name is not None:
                known[found[0]] = ((name[1] or name[2]).strip(), "")
            elif len(found) == 4:
                known[found[1]] = (found[2], found[3])
    return known


def without_branches(text: str) -> tuple[str, int]:
    r"""Leave out the branches that TeX does not take, as far as that is known; returns the rest and their words.

    `\ifx` compares two commands, which are seldom equal; a condition of the author is false unless it is set.
    """
    own = {name: f"\\{name}true" in text for name in _NEW_CONDITION.findall(text)}
    waiting: list[tuple[str, int, int]] = []  # name, start, and end of the condition
    branches: dict[int, int] = {}  # start of the else branch by the start of the condition
    cuts: list[tuple[int, int]] = []
    n_words = 0
    for match in _CONDITION.finditer(text):
        token = match["token"]
        if token == "else" and waiting:
            branches[waiting[-1][1]] = match.start()
        elif token == "fi" and waiting:
            name, start, stop = waiting.pop()
            is_true = own.get(name.removeprefix("if"), {"iftrue": True, "ifx": False}.get(name))
            if is_true is not None:
                branch = branches.get(start, match.start())
                after_else = branch + len(r"\else") if start in branches else branch
                left_out = (after_else, match.start()) if is_true else (stop, branch)
                n_words += len(text[slice(*left_out)].split())
                cuts += [(start, stop), (branch, after_else), left_out, match.span()]
        elif token not in ("else", "fi") and not _WITH_ARGUMENTS.fullmatch(token):
            if text.endswith(_NEWIF, max(0, match.start() - len(_NEWIF)), match.start()):
                continue
            condition = _TWO_TOKENS.match(text, match.end()) if token == "ifx" else None
            waiting.append((token, match.start(), condition.end() if condition else match.end()))
    parts, place = [], 0
    for start, stop in sorted(cuts):
        if start >= place:
            parts.append(text[place:start])
        place = max(place, stop)
    return "".join([*parts, text[place:]]), n_words
