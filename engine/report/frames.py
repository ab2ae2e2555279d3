"""Results and section matrices as pandas data frames; pandas is an extra. Scores nothing."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import TYPE_CHECKING, Any

from engine.extras import check_extra
from engine.pairs import PAIR_COLUMNS
from engine.report.contract import result_dict
from engine.report.rows import COUNT_COLUMNS, HIT_COLUMNS, PART_COLUMNS, part_rows
from engine.text.document import section_label

if TYPE_CHECKING:
    import pandas

    from engine.pairs import Pairs
    from engine.result import Result, SectionMatrix
    from engine.text.document import Document


def hit_frame(result: Result) -> pandas.DataFrame:
    """A row for each hit: `HIT_COLUMNS`, then the metadata.

    A metadata field with the name of one of these columns is left out.

    Raises:
        MissingExtra: pandas is not installed.
    """
    rows: list[dict[str, Any]] = []
    for hit in result.hits:
        values = (result.query.doc_id, hit.rank, hit.score, hit.doc_id, hit.title, result.status.value)
        own = dict(zip(HIT_COLUMNS, values, strict=True))
        rows.append(own | {name: value for name, value in hit.metadata.items() if name not in own})
    frame: pandas.DataFrame = _pandas("Result.to_pandas()").DataFrame(rows, columns=None if rows else HIT_COLUMNS)
    return frame


def part_frame(result: Result, *, n_pairs: int | None = None) -> pandas.DataFrame:
    """A row for each part, see `engine.report.rows`.

    Args:
        result: of a search.
        n_pairs: section pairs listed for each hit; all by default.

    Raises:
        MissingExtra: pandas is not installed.
    """
    library = _pandas("Result.parts_to_pandas()")
    frame: pandas.DataFrame = library.DataFrame(part_rows(result_dict(result, n_pairs=n_pairs)), columns=PART_COLUMNS)
    # Explicit types, also for columns without any value; "Int64" is the pandas type of integers that can be missing.
    return frame.astype(dict.fromkeys(COUNT_COLUMNS, "Int64") | dict.fromkeys(("similarity", "threshold"), "float64"))


def pairs_frame(pairs: Pairs) -> pandas.DataFrame:
    """A row for each pair of documents, with `PAIR_COLUMNS`.

    Raises:
        MissingExtra: pandas is not installed.
    """
    frame: pandas.DataFrame = _pandas("Pairs.to_pandas()").DataFrame(pairs.rows(), columns=PAIR_COLUMNS)
    return frame.astype(dict.fromkeys(("score", "forward", "backward"), "float64"))


def matrix_frame(matrix: SectionMatrix) -> pandas.DataFrame:
    """The cosines of a section matrix, with rows and columns labelled by index and heading.

    Raises:
        MissingExtra: pandas is not installed.
    """
    library = _pandas("SectionMatrix.to_pandas()")

    def sections(document: Document, side: str) -> Any:  # noqa: ANN401
        labels = [section_label(document, position) for position in range(len(document.sections))]
        return library.MultiIndex.from_arrays(
            [range(len(labels)), labels], names=[f"{side}_section", f"{side}_heading"]
        )

    rows, columns = sections(matrix.query, "query"), sections(matrix.target, "target")
    frame: pandas.DataFrame = library.DataFrame(matrix.cosines, index=rows, columns=columns)
    return frame


def _pandas(feature: str) -> ModuleType:
    check_extra("pandas", feature, "pandas", "pandas")
    return importlib.import_module("pandas")
