"""Tables of libraries, by stand-ins where the library is not a dependency."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pandas
import pytest

from engine.errors import DocumentError
from longmatch.sources import is_table, table_columns, table_rows

ROWS = [{"id": 1, "text": "fox"}, {"id": 2, "text": "dog"}]


class Batch:
    """As `pyarrow.RecordBatch`."""

    schema = SimpleNamespace(names=["id", "text"])

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.rows = rows

    def to_pylist(self) -> list[dict[str, Any]]:
        return self.rows


class ArrowTable:
    """As `pyarrow.Table`."""

    schema = Batch.schema

    def to_batches(self) -> list[Batch]:
        return [Batch(ROWS[:1]), Batch(ROWS[1:])]


class BatchReader:
    """As `pyarrow.RecordBatchReader`."""

    schema = Batch.schema

    def __iter__(self) -> Iterator[Batch]:
        return iter(ArrowTable().to_batches())


class Dataset:
    """As `datasets.Dataset`."""

    column_names: list[str] | None = ["id", "text"]  # noqa: RUF012

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(ROWS)


class DatasetDict(dict[str, Any]):
    """As `datasets.DatasetDict`."""


class PolarsFrame:
    """As `polars.DataFrame`."""

    columns = ("id", "text")
    schema = SimpleNamespace(names=lambda: ["id", "text"])

    def iter_rows(self, *, named: bool) -> Iterator[dict[str, Any]]:
        assert named
        return iter(ROWS)


class LazyFrame:
    """As `polars.LazyFrame`."""

    columns = ("id", "text")

    def collect(self) -> None: ...


class ChunkedArray:
    """As `pyarrow.ChunkedArray`: one column."""


for stand_in, module in (
    (Batch, "pyarrow.lib"),
    (ArrowTable, "pyarrow.lib"),
    (BatchReader, "pyarrow.lib"),
    (Dataset, "datasets.arrow_dataset"),
    (DatasetDict, "datasets.dataset_dict"),
    (PolarsFrame, "polars.dataframe.frame"),
    (LazyFrame, "polars.lazyframe.frame"),
    (ChunkedArray, "pyarrow.lib"),
):
    stand_in.__module__ = module


class Extended(pandas.DataFrame):
    """A table of a library that extends pandas."""


@pytest.mark.parametrize(
    "table",
    [pandas.DataFrame(ROWS), Extended(ROWS), Batch(ROWS), ArrowTable(), BatchReader(), Dataset(), PolarsFrame()],
    ids=lambda table: type(table).__name__,
)
def test_rows_are_dicts_by_column(table: object) -> None:
    assert is_table(table)
    assert table_columns(table) == ["id", "text"]
    assert list(table_rows(table)) == ROWS


def test_a_stream_of_a_dataset_may_not_know_its_columns() -> None:
    stream = Dataset()
    stream.column_names = None
    assert table_columns(stream) is None


def test_a_dataset_of_several_splits_is_refused() -> None:
    with pytest.raises(DocumentError, match=r"splits \['train', 'test'\]; choose one: dataset\['train'\]"):
        table_columns(DatasetDict(train=Dataset(), test=Dataset()))


def test_a_lazy_table_is_refused() -> None:
    assert is_table(LazyFrame())
    with pytest.raises(DocumentError, match=r"pass table.collect\(\)"):
        table_columns(LazyFrame())


@pytest.mark.parametrize("source", [[], {}, "text", pandas.Series(["a"]), ChunkedArray(), iter(()), None])
def test_other_sources_are_no_tables(source: object) -> None:
    assert not is_table(source)
