"""Fields of records and files: their names, numbers and booleans that filters can compare, and lists of people."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from engine.errors import DocumentError


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of a record that hold text, title and id; None is the usual name."""

    text: str | None = None
    title: str | None = None
    id: str | None = None

    def named(self, record: dict[str, Any]) -> dict[str, Any]:
        """The record with these fields under the usual names.

        Raises:
            DocumentError: it has no such field.
        """
        names = {"text": self.text, "title": self.title, "id": self.id}
        for usual, name in names.items():
            if name is None:
                continue
            if name not in record:
                found = ", ".join(map(str, [*record][:20])) or "none"
                raise DocumentError(f'it has no field "{name}"; its fields are {found}')
            others = ("sections",) if usual == "text" else ("_id",) if usual == "id" else ()
            record = {key: value for key, value in record.items() if key not in (name, *others)} | {usual: record[name]}
        return record


USUAL = Fields()


_BORDER = re.compile(r"(?<!\s)\s++(?:and|und|et|y|&)\s+|(?:(?<!\s)\s*+)?,\s*+(?:and|&)\s+")
_MAIL = re.compile(r"\s?<[^<>\s@]{1,80}@[^<>\s]{1,80}>")
_COMMA = re.compile(r"(?:(?<!\s)\s*+)?,\s*")
_SUFFIX = re.compile(r"(?:jr|sr|ii|iii|iv|ph\.?\s?d|m\.?d|esq|dr|prof|inc|ltd|llc|gmbh|corp)\.?$", re.IGNORECASE)
_ORGANISATION = re.compile(
    r"\b(?:of|the|for|agency|alliance|association|authority|bank|board|bureau|cent(?:er|re)|collaboration|college"
    r"|commission|committee|company|consortium|cooperative|corp|corporation|council|court|department|federation"
    r"|foundation|gmbh|group|hospital|inc|institute|institut|laborator(?:y|ies)|labs?|llc|ltd|ministry|network|office"
    r"|organi[sz]ation|press|project|service|society|team|trust|union|universit(?:y|ät|é))\b",
    re.IGNORECASE,
)


def typed_scalar(raw: str) -> str | int | float | bool:
    """`12` becomes an int, `1.5` a float, `true` a bool, anything else or anything in quotes a string.

    An integer with leading zeros (`007`) or over 16 digits stays a string.
    """
    if len(raw) > 1 and raw[0] == raw[-1] and raw[0] in "\"'":
        return re.sub(r"\\([\"\\])", r"\1", raw[1:-1]) if raw[0] == '"' else raw[1:-1].replace("''", "'")
    if re.fullmatch(r"-?(0|[1-9]\d{0,15})", raw):
        return int(raw)
    if re.fullmatch(r"-?\d{1,15}\.\d{1,15}", raw):
        return float(raw)
    return {"true": True, "false": False}.get(raw.lower(), raw)


def split_names(text: str) -> list[str]:
    """The names in a line; "Vane, Ann" is one name, and so is an organisation with "and" in its name."""
    text = " ".join(_MAIL.sub("", text).split(" ")).strip(" ,;")
    if ";" in text or "\n" in text:
        return _distinct(re.split(r"(?:(?<!\s)\s*)?[;\n]\s*", text))
    parts = [part for border in _BORDER.split(text) for part in _commas(border)]
    if len(parts) > 1 and _ORGANISATION.search(text) and not all(" " in part for part in parts):
        return [text]
    return _distinct(parts)


_MADE_UP_NAME = re.compile(
    r"[A-Z]*\(0x[0-9a-f]+\)$|\(?(?:unknown|anonymous|author|(?:\w+ ){0,2}user|admin(?:istrator)?|owner|root|hp|dell"
    r"|asus|acer|lenovo|(?:pdf)?(?:la)?tex|(?:adobe|microsoft)(?: \w+)?|acrobat|word|windows|preferred customer"
    r"|python-docx|un-named)\)?$|[a-z]+\d+$",
    re.IGNORECASE,
)


def authors_of(text: str) -> list[str]:
    """The names in the property of a file, without those that a program or a machine puts there."""
    return [name for name in split_names(text) if not _MADE_UP_NAME.match(name)]


_WHOLE = ("name", "literal", "fullname", "displayname", "collab", "author")
_GIVEN, _FAMILY = (
    ("given", "givenname", "first", "firstname", "forename"),
    ("family", "familyname", "last", "lastname", "surname"),
)


def names_of(value: object) -> list[str]:
    """Names of authors as a record has them: a text, a list of names, or objects with the parts of names."""
    if isinstance(value, str):
        return split_names(value)
    if isinstance(value, list):
        return _distinct([name for one in value for name in ([one] if isinstance(one, str) else names_of(one))])
    if not isinstance(value, dict):
        return []
    parts = {str(key).lower().replace("_", "").replace("-", ""): one for key, one in value.items()}
    whole = next((parts[key] for key in _WHOLE if parts.get(key)), None)
    if whole is not None:
        return [whole] if isinstance(whole, str) else names_of(whole)
    given, middle, family = (
        next((parts[key] for key in keys if parts.get(key)), "") for keys in (_GIVEN, ("middle",), _FAMILY)
    )
    middle = " ".join(map(str, middle)) if isinstance(middle, list) else middle
    name = " ".join(f"{given} {middle} {family} {parts.get('suffix') or ''}".split())
    return [name] if name else [str(key) for key, one in value.items() if len(value) == 1 and isinstance(one, dict)]


def is_organisation(name: str) -> bool:
    """Whether a name is that of an organisation, by its words."""
    return "," not in name and _ORGANISATION.search(name) is not None


def _commas(text: str) -> list[str]:
    """The names between commas; "Vane, Ann" and "Vane, Jr." stay whole."""
    parts = [part for part in _COMMA.split(text) if part]
    merged: list[str] = []
    for part in parts:
        if merged and _SUFFIX.match(part):
            merged[-1] += f", {part}"
        else:
            merged.append(part)
    are_names = all(len(part.split()) > 1 for part in merged)
    return merged if are_names else [text]


def _distinct(names: list[str]) -> list[str]:
    return [name for name in dict.fromkeys(name.strip(" ,") for name in names) if name]
