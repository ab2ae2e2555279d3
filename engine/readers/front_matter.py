"""The front matter of a text file: fields in YAML or TOML between two marks at its start."""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any, ClassVar

from engine.errors import DocumentError
from engine.readers.jsonl import flattened
from engine.readers.scalars import names_of, typed_scalar
from engine.text.document import MetadataValue

_MAX_CHARS = 100_000
_MAX_VALUES = 10_000
_YAML = re.compile(
    r"\A---[ \t]*\n(?![ \t]*\n)"
    r"(?P<fields>(?:(?!---|\.\.\.[ \t]*$)[^\n]*\n)*?)(?:---(?:[ \t]+[a-z_]{1,20})?|\.\.\.)[ \t]*$\n?",
    re.MULTILINE,
)
_TOML = re.compile(r"\A\+\+\+[ \t]*\n(?P<fields>(?:(?!\+\+\+)[^\n]*\n)*?)\+\+\+[ \t]*$\n?", re.MULTILINE)
_TOML_NAMED = re.compile(r"\A---toml[ \t]*\n(?P<fields>.*?)^---[ \t]*$\n?", re.MULTILINE | re.DOTALL)
_JSON = re.compile(
    r"\A(?:(?:---json|;;;)[ \t]*\n(?P<fields>.*?)^(?:---|;;;)[ \t]*$\n?|(?P<bare>\{[ \t]*\n.*?\n\}[ \t]*$)\n)",
    re.MULTILINE | re.DOTALL,
)
_TITLE_BLOCK = re.compile(
    r"\A%[ \t]++(?P<title>[^\n]++(?:\n[ \t]++[^\n]++)*+)\n"
    r"(?:%[ \t]*+(?P<authors>[^\n]*+(?:\n[ \t]++[^\n]++)*+)\n(?:%[ \t]*+(?P<date>[^\n]*+)\n)?)?(?=[ \t]*\n)"
)  # of pandoc
_NOTE = re.compile(r"\^?\[\^?[^\[\]]*\]$")  # behind a name
_LINE = re.compile(r"[A-Za-z_][\w .-]{0,100}:(?:\s|$)|[ \t#]|-\s|$")  # of fields that a parser of YAML may refuse
_BARE = re.compile(  # a value that YAML may refuse without quotes
    r"^([ \t-]{0,40}[A-Za-z_][\w .-]{0,100}:[ \t]+)((?:[^\s\"'\[{|>#&!]|[\"'\[{](?=[^\n]*[^\"'\]}\n]$))[^\n]*)$",
    re.MULTILINE,
)
_AUTHORS = ("authors", "author", "by", "creator")


def front_matter(text: str) -> tuple[dict[str, MetadataValue], str]:
    """The fields before a text, and the text after them; no fields where it starts with a mere rule."""
    forms = ((_YAML, _yaml), (_TOML, _toml), (_TOML_NAMED, _toml), (_JSON, _json), (_TITLE_BLOCK, None))
    for pattern, parse in forms if text.startswith(("---", "+++", ";;;", "{", "%")) else ():
        match = pattern.match(text, 0, _MAX_CHARS)
        fields = None if match is None else _title_block(match) if parse is None else parse(_fields_of(match))
        if match is not None and fields is not None:
            return fields, text[match.end() :]
    return {}, text


def _fields_of(match: re.Match[str]) -> str:
    return next((text for text in match.groupdict().values() if text is not None), "")


def _title_block(match: re.Match[str]) -> dict[str, MetadataValue] | None:
    names = [" ".join(line.split()) for line in (match["authors"] or "").split("\n")]
    return _flat({"title": match["title"], "authors": "; ".join(names), "date": match["date"] or None})


def _json(lines: str) -> dict[str, MetadataValue] | None:
    try:
        return _flat(json.loads(lines))
    except (ValueError, RecursionError):
        return None


def _toml(lines: str) -> dict[str, MetadataValue] | None:
    try:
        return _flat(tomllib.loads(lines))
    except (tomllib.TOMLDecodeError, RecursionError):
        return None


def _yaml(lines: str) -> dict[str, MetadataValue] | None:
    """The fields; None where the lines are no fields but text."""
    import yaml  # slow to import

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        """Values as the filters compare them: no dates, and "no" is a word."""

        yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}

    def scalar(loader: Any, node: Any) -> object:  # noqa: ANN401
        plain = not node.style
        if plain and node.value in ("", "~", "null"):
            return None
        return typed_scalar(node.value) if plain else node.value.rstrip("\n")

    Loader.add_constructor("tag:yaml.org,2002:str", scalar)
    try:
        return _flat(yaml.load(lines, Loader))
    except (yaml.YAMLError, RecursionError, ValueError):
        quoted = _BARE.sub(lambda match: match[1] + json.dumps(match[2].rstrip()), lines)
        return _yaml(quoted) if quoted != lines and all(map(_LINE.match, lines.split("\n"))) else None


def _flat(fields: object) -> dict[str, MetadataValue] | None:
    """The fields with dotted names; None where they are no fields, or too many."""
    if not isinstance(fields, dict) or not fields or _n_values(fields) > _MAX_VALUES:
        return None
    if all(" " in str(key) for key in fields):  # a sentence with a colon
        return None
    flat: dict[str, MetadataValue] = {}
    for key, value in fields.items():
        name = "title" if str(key).lower() == "title" else str(key)
        try:
            flat |= flattened({name: value})
        except DocumentError:
            continue  # a value that no filter can compare
    named = next((key for name in _AUTHORS for key in fields if str(key).lower() == name and fields[key]), None)
    authors = [_NOTE.sub("", name).strip() for name in names_of(fields[named])] if named is not None else []
    known: dict[str, MetadataValue] = {
        key: value for key, value in flat.items() if value is not None and not (authors and key == named)
    }
    return known | {"authors": [*authors]} if authors else known


def _n_values(value: object) -> int:
    """The number of values; an alias counts each time, and the count ends above `_MAX_VALUES`."""
    count, todo = 0, [value]
    while todo and count <= _MAX_VALUES:
        count += 1
        one = todo.pop()
        todo.extend(one.values() if isinstance(one, dict) else one if isinstance(one, list) else ())
    return count
