"""Patents of the USPTO from 1976 to 2001, which are text: a field a line, under a code of four characters (APS)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import partial

from engine.readers import left_out as reasons
from engine.readers.blocks import Blocks, several
from engine.text.cleaning import one_line
from engine.text.document import Document, MetadataValue, Unreadable

_START = re.compile(r"^PATN[ \t]*$", re.MULTILINE)
_LINE = re.compile(r"([A-Z][A-Z0-9]{2,3})(?:[ \t]+(.*))?$")
_PARTS = {
    "ABST": "Abstract", "GOVT": "Government interest", "PARN": "Related applications", "BSUM": "Description",
    "DRWD": "Drawings", "DETD": "Detailed description", "CLMS": "Claims", "DCLM": "Claims",
}  # fmt: skip
_TEXT = re.compile(r"PA[A-Z0-9]?$|PAR$|PAL$|PAC$|NUM$|STM$|TBL$|EQU$|FN[A-Z]?$")
_VERBATIM = ("TBL",)
_CITED = frozenset(["UREF", "FREF", "OREF"])
_USED = {("PATN", "WKU"), ("PATN", "TTL"), ("PATN", "ISD"), ("INVT", "NAM"), ("ASSG", "NAM"), ("CLAS", "ICL")}
_USED |= {("PATN", "APD"), *((group, code) for group in ("PRIR", "RLAP") for code in ("CNT", "APN", "APD"))}
_DATE = re.compile(r"(\d{4})(\d\d)(\d\d)$")
_Field = tuple[str, str, str]  # group, code, value


def is_aps(text: str) -> bool:
    """Whether a text starts with a patent in this form, maybe after the head of a weekly file."""
    match = _START.search(text, 0, 500)
    return (
        match is not None
        and re.search(r"^WKU[ \t]+\w", text[match.end() : match.end() + 500], re.MULTILINE) is not None
    )


def read_text(text: str, doc_id: str, source: str) -> Document | Iterator[Document | Unreadable]:
    """Read the patent of a text, or the patents of a weekly file, each named by its number."""
    starts = [match.start() for match in _START.finditer(text)]
    pieces = [text[start:stop] for start, stop in zip(starts, [*starts[1:], len(text)], strict=True)]
    readers = (partial(_patent, piece, doc_id, source) for piece in pieces)
    return _patent(pieces[0], doc_id, source) if len(pieces) == 1 else several(readers, doc_id, source, ("number",))


def _patent(text: str, doc_id: str, source: str) -> Document:
    fields = list(_fields(text))
    values = {(group, code): value for group, code, value in reversed(fields)}
    title = one_line(values.get(("PATN", "TTL"), ""))
    blocks = Blocks()
    blocks.add(title)
    part, number = "", ""
    for group, code, value in fields:
        if group in _PARTS and _TEXT.match(code):
            if _PARTS[group] != part:
                part = _PARTS[group]
                blocks.add_heading(part, 1)
            if code == "PAC":
                blocks.add_heading(one_line(value), 2)
            elif code == "NUM":
                number = value.strip()
            elif code != "STM":
                blocks.add(value if code in _VERBATIM else one_line(_numbered(number, value)))
                number = ""
        elif group in _CITED:
            blocks.left_out[reasons.REFERENCES] += code in ("PNO", "PAL")
        elif (group, code) not in _USED:
            blocks.left_out[reasons.FRONT_MATTER] += len(value.split())
    return blocks.document(doc_id, source, title, _metadata(fields, values))


def _numbered(number: str, text: str) -> str:
    """The text of a claim with its number, which the text itself mostly repeats."""
    return text if not number or text.lstrip().startswith(number.rstrip(".")) else f"{number} {text}"


def _fields(text: str) -> Iterator[_Field]:
    """The fields with their groups; a line that starts with blanks continues the field before."""
    group, code, lines = "", "", list[str]()
    for line in [*text.split("\n"), "END"]:
        match = _LINE.match(line.rstrip())
        if match is None:
            lines.append(line[5:] if line.startswith("     ") else line.strip())
            continue
        if code:
            yield group, code, "\n".join(lines)
        is_group = len(match[1]) == 4 and not (match[2] or "").strip()
        group, code, lines = (match[1], "", []) if is_group else (group, match[1], [match[2] or ""])


def _metadata(fields: Iterable[_Field], values: dict[tuple[str, str], str]) -> dict[str, MetadataValue]:
    number = re.match(r"([A-Z]*)0*+(\d+?)\d?$", values.get(("PATN", "WKU"), "").strip())
    date, filed = (_iso(values.get(("PATN", code), "")) for code in ("ISD", "APD"))

    def all_of(group: str, code: str) -> list[str | int | float | bool | None]:
        return [one_line(value) for at, name, value in fields if (at, name) == (group, code)]

    offices = zip(all_of("PRIR", "CNT"), all_of("PRIR", "APN"), strict=False)
    foreign = [f"{str(country)[:2]}{application}" for country, application in offices]
    claimed = [_iso(str(day)) for group in ("PRIR", "RLAP") for day in all_of(group, "APD")]
    found: dict[str, MetadataValue] = {
        "number": f"US{number[1]}{number[2]}" if number else "",
        "date": date,
        "year": int(date[:4]) if date else None,
        "filed": filed,
        "priority": [*foreign, *(f"US{number}" for number in all_of("RLAP", "APN"))],
        "priority_date": min(filter(None, (filed, *claimed)), default=""),
        "inventors": [" ".join(reversed(str(name).split("; "))) for name in all_of("INVT", "NAM")],
        "assignees": all_of("ASSG", "NAM"),
        "ipc": all_of("CLAS", "ICL"),
    }
    return {field: value for field, value in found.items() if value}


def _iso(date: str) -> str:
    match = _DATE.match(date.strip())
    return "-".join(match.groups()) if match else ""
