"""Rows of tables of pandas, Arrow, Polars and Hugging Face datasets as dicts. Imports none of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from engine.errors import DocumentError

_SPLITS = ("DatasetDict", "IterableDatasetDict")


def is_table(source: object) -> bool:
    """Whether a source has rows and columns: a `DataFrame`, an Arrow table or stream of batches, a `Dataset`."""
    library = _library(source)
    if library == "pandas":
        return hasattr(source, "itertuples")
    if library == "polars":
        return hasattr(source, "iter_rows") or hasattr(source, "collect")
    if library == "pyarrow":
        return hasattr(source, "schema")
    return library == "datasets"


def table_columns(table: Any) -> list[str] | None:  # noqa: ANN401
    """The names of the columns; None if the table does not know them before it is read.

    Raises:
        DocumentError: the source is several tables, or a lazy table.
    """
    if type(table).__name__ in _SPLITS:
        raise DocumentError(f"the dataset has splits {list(table)}; choose one: dataset[{next(iter(table), '')!r}]")
    if not hasattr(table, "iter_rows") and _library(table) == "polars":
        raise DocumentError("the table is not computed yet; pass table.collect()")
    match _library(table):
        case "pyarrow":
            return list(table.schema.names)
        case "datasets":
            return None if table.column_names is None else list(table.column_names)
        case _:
            return [str(name) for name in table.columns]


def table_rows(table: Any) -> Iterator[Mapping[str, Any]]:  # noqa: ANN401
    """The rows one after another, each a dict by column."""
    match _library(table):
        case "pandas":
            names = [str(name) for name in table.columns]
            for row in table.itertuples(index=False, name=None):
                yield dict(zip(names, row, strict=True))
        case "polars":
            yield from table.iter_rows(named=True)
        case "pyarrow":
            for batch in _batches(table):
                yield from batch.to_pylist()
        case _:
            yield from table


def _batches(table: Any) -> Iterable[Any]:  # noqa: ANN401
    """Batches of an Arrow table, dataset, batch or stream of batches."""
    if hasattr(table, "to_batches"):
        return table.to_batches()  # type: ignore[no-any-return]
    return [table] if hasattr(table, "to_pylist") else table


def _library(source: object) -> str | None:
    """The library that defines the class of a value or one of its base classes; None for other libraries."""
    for base in type(source).__mro__:
        library = base.__module__.partition(".")[0]
        if library in ("pandas", "polars", "pyarrow", "datasets"):
            return library
    return None
