"""The metadata fields of an index, with types and numbers of documents. Reads the catalog alone."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, String, case, cast, func, select

from engine.document import Scalar
from engine.errors import QueryError
from engine.store.catalog import CATALOG_FILE, DocumentRow, connect
from engine.store.where import compared_keys, has_key, json_path

N_EXAMPLES = 3
_N_NAMED = 8  # fields that an error lists
_TYPES = {
    "text": "text",
    "integer": "number",
    "real": "number",
    "true": "true or false",
    "false": "true or false",
    "array": "list",
    "object": "mapping",
}


@dataclass(frozen=True, slots=True)
class Field:
    """A metadata field, as the documents of an index have it."""

    name: str
    types: tuple[str, ...]  # "text", "number", "true or false", "list", "mapping"; several where documents differ
    n_documents: int  # that have a value
    examples: tuple[Scalar, ...]  # of numbers the least and the greatest, of others the commonest; at most 3


def stored_fields(folder: Path) -> list[Field]:
    """The metadata fields of an index by name; reads the metadata of all documents.

    Args:
        folder: the index.
    """
    with connect(folder / CATALOG_FILE, read_only=True).connect() as connection:
        return [_field(connection, name, kinds) for name, kinds in _kinds(connection).items()]


def stored_types(folder: Path) -> dict[str, frozenset[str]]:
    """The metadata fields of an index by name, each with the JSON types of its values, as SQLite names them.

    Args:
        folder: the index.
    """
    with connect(folder / CATALOG_FILE, read_only=True).connect() as connection:
        return {name: frozenset(kinds) for name, kinds in _kinds(connection).items()}


def stored_values(folder: Path, name: str, *, containing: str = "", limit: int = 20) -> list[tuple[Scalar, int]]:
    """The values of a metadata field with the documents that have each, the commonest first.

    Args:
        folder: the index.
        name: of the field; a list counts for each of its elements. A field of no document has no values.
        containing: what the text of a value must contain, in any case of ASCII letters; "" for every value.
        limit: of the values.
    """
    element = func.json_each(DocumentRow.meta, json_path(name)).table_valued("value", "type", joins_implicitly=True)
    n_documents = func.count(DocumentRow.id.distinct())
    # SQLite has true and false as 1 and 0.
    shown = case((element.c.type.in_(("true", "false")), element.c.type), else_=cast(element.c.value, String))
    counts = (
        select(element.c.value, element.c.type, n_documents)
        .select_from(DocumentRow, element)
        .where(element.c.type.not_in(("null", "object", "array")))
        .where(func.instr(func.lower(shown), containing.lower()) > 0)
        .group_by(element.c.value, element.c.type)
        .order_by(n_documents.desc(), element.c.value)
        .limit(limit)
    )
    with connect(folder / CATALOG_FILE, read_only=True).connect() as connection:
        found = connection.execute(counts).all()
    return [(kind == "true" if kind in ("true", "false") else value, count) for value, kind, count in found]


def check_fields(folder: Path, where: str) -> None:
    """Whether each field that a filter compares with a value is in some document of the index.

    A field that is only tested with `exists` may be absent, and an index without documents has no fields.

    Args:
        folder: the index.
        where: a metadata filter, see `engine.store.where`.

    Raises:
        QueryError: no document has one of the fields, or the filter does not parse.
    """
    with connect(folder / CATALOG_FILE, read_only=True).connect() as connection:
        for key in compared_keys(where):
            if connection.execute(select(DocumentRow.id).where(has_key(key)).limit(1)).first() is None:
                names = list(_kinds(connection))
                if names or connection.execute(select(DocumentRow.id).limit(1)).first() is not None:
                    raise QueryError(_unknown(where, key, names))


def _kinds(connection: Connection) -> dict[str, dict[str, int]]:
    """For each field, by name, the documents that have a value of each JSON type."""
    entry = func.json_each(DocumentRow.meta).table_valued("key", "type", joins_implicitly=True)
    counts = (
        select(entry.c.key, entry.c.type, func.count())
        .select_from(DocumentRow, entry)
        .where(entry.c.type != "null")
        .group_by(entry.c.key, entry.c.type)
        .order_by(entry.c.key, entry.c.type)
    )
    kinds: dict[str, dict[str, int]] = {}
    for name, kind, n_documents in connection.execute(counts):
        kinds.setdefault(name, {})[kind] = n_documents
    return kinds


def _field(connection: Connection, name: str, kinds: dict[str, int]) -> Field:
    types = tuple(dict.fromkeys(_TYPES[kind] for kind in kinds))
    # A list gives a row for each element, another value one row.
    element = func.json_each(DocumentRow.meta, json_path(name)).table_valued("value", "type", joins_implicitly=True)
    values = select(element.c.value).select_from(DocumentRow, element).where(element.c.type != "null")
    found: Iterable[Scalar]
    if types == ("number",):
        bounds = values.with_only_columns(func.min(element.c.value), func.max(element.c.value))
        found = dict.fromkeys(connection.execute(bounds).one())
    elif types == ("true or false",):
        found = [kind == "true" for kind in kinds]
    else:
        commonest = values.group_by(element.c.value).order_by(func.count().desc(), element.c.value)
        found = connection.execute(commonest.limit(N_EXAMPLES)).scalars().all()
    return Field(name, types, sum(kinds.values()), tuple(found))


def check_field(folder: Path, name: str) -> None:
    """Whether some document of the index has a metadata field.

    Args:
        folder: the index.
        name: of the field.

    Raises:
        QueryError: none has.
    """
    names = list(stored_types(folder))
    if name not in names:
        raise QueryError(f"no document has the field {name!r}; {_known(name, names)}")


def _unknown(where: str, key: str, names: list[str]) -> str:
    return f"filter {where!r}: no document has the field {key!r}; {_known(key, names)}"


def _known(key: str, names: list[str]) -> str:
    """The names that are similar, and those that there are."""
    similar = difflib.get_close_matches(key, names, n=2) or [name for name in names if name.lower() == key.lower()]
    hint = f"did you mean {' or '.join(map(repr, similar))}? " if similar else ""
    if not names:
        known = "the documents have no metadata; filter by doc_id, title or source"
    else:
        more = f" and {len(names) - _N_NAMED} more" if len(names) > _N_NAMED else ""
        known = f"there are {', '.join(names[:_N_NAMED])}{more}; list them: longmatch info INDEX --fields"
    return hint + known
