"""Pairs and clusters as CSV and Parquet."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from engine.extras import check_extra
from engine.pairs import CLUSTER_COLUMNS, PAIR_COLUMNS, Cluster, cluster_rows
from engine.report.rows import as_cell
from engine.views import Pairs


def pairs_csv(pairs: Pairs) -> str:
    """A line for each pair, best first."""
    return _csv(PAIR_COLUMNS, pairs.rows())


def clusters_csv(clusters: Sequence[Cluster]) -> str:
    """A line for each document of a cluster, the largest cluster first."""
    return _csv(CLUSTER_COLUMNS, cluster_rows(clusters))


def _csv(columns: Sequence[str], rows: Sequence[Sequence[str | float]]) -> str:
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(columns)
    lines.writerows([as_cell(value) for value in row] for row in rows)
    return text.getvalue()


def check_parquet() -> None:
    """Whether Parquet can be written.

    Raises:
        MissingExtra: pyarrow is not installed.
    """
    check_extra("pyarrow", "Parquet", "pyarrow", "arrow")


def pairs_parquet(pairs: Pairs) -> bytes:
    """Pairs as Parquet, best first; mode, least score, top and certification are in the metadata of the file.

    Raises:
        MissingExtra: pyarrow is not installed.
    """
    check_parquet()
    import pyarrow
    from pyarrow import parquet

    types = {"score": pyarrow.float64(), "forward": pyarrow.float64(), "backward": pyarrow.float64()}
    columns = list(zip(*pairs.rows(), strict=True)) or [()] * len(PAIR_COLUMNS)
    arrays = [
        pyarrow.array(list(values), types.get(name, pyarrow.string()))
        for name, values in zip(PAIR_COLUMNS, columns, strict=True)
    ]
    described = {"mode": pairs.mode, "least": f"{pairs.least:g}", "top": str(pairs.top)}
    described["certified"] = str(pairs.is_certified).lower()
    table = pyarrow.table(arrays, names=list(PAIR_COLUMNS)).replace_schema_metadata(described)
    stream = io.BytesIO()
    parquet.write_table(table, stream)
    return stream.getvalue()
