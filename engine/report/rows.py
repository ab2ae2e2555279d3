"""Parts of results as rows with the same columns, for CSV, and as data frames of pandas, an extra.

One row is one listed part of one hit: a section pair, or the rest. The fields of the hit
repeat in each of its rows, and the contributions of these rows sum to the score, to 1e-5. A result
without hits has no row. `novelty_rows` has one row for each section of a search for novelty.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

from engine.environment import check_extra
from engine.report.contract import listed_hits, result_dict
from engine.result import N_SNIPPETS, PAIR_COLUMNS
from engine.text.cleaning import safe
from engine.text.document import section_label

if TYPE_CHECKING:
    import pandas

    from engine.result import Pairs, Result, SectionMatrix
    from engine.text.document import Document


HIT_COLUMNS = ("query_id", "rank", "score", "doc_id", "title", "status")
COUNT_COLUMNS = tuple(  # integers; empty if a part has no sections; pages also if the format has no pages
    f"{side}_{field}" for side in ("query", "target") for field in ("section", "start", "end", "page")
)
_FORMULA = ("=", "+", "-", "@", "\t", "\n")  # first characters that make a cell a formula
PART_COLUMNS = (
    *HIT_COLUMNS,
    "kind",
    *("query_section", "query_heading", "query_start", "query_end", "query_page"),
    *("target_section", "target_heading", "target_start", "target_end", "target_page"),
    *("contribution", "similarity", "threshold", "words", "both_cite"),
)
NOVELTY_COLUMNS = (
    *("query_id", "rank", "novelty", "status"),
    *("section", "heading", "kind", "start", "end", "page"),
    *("doc_id", "title", "score"),
    *("target_section", "target_heading", "target_page", "contribution", "similarity", "threshold", "words"),
)


def part_rows(result: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The rows of a result, each with `PART_COLUMNS`.

    Yields:
        Rows in the order of hits and parts; None for values that a part does not have. `words` are the strongest
        terms, strongest first, separated by "; "; `both_cite` the works that the query and the hit cite.
    """
    for hit in listed_hits(result):
        shared = {
            "query_id": result["query"]["id"],
            "rank": hit["rank"],
            "score": hit["score"],
            "doc_id": hit["id"],
            "title": hit["title"],
            "status": result["status"],
        }
        both_cite = "; ".join(reference["name"] for reference in hit["references"]["shared"]) or None
        for part in hit["parts"]:
            yield {
                **shared,
                "kind": part["kind"],
                **_section("query", part["query_section"]),
                **_section("target", part["target_section"]),
                "contribution": part["contribution"],
                "similarity": part["similarity"],
                "threshold": part["threshold"],
                "words": "; ".join(word["term"] for word in part["words"]) or None,
                "both_cite": both_cite,
            }


def novelty_rows(found: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A row for each section, most novel first, with the strongest section pair of its hit.

    Yields:
        Rows with `NOVELTY_COLUMNS`; None for values that a section does not have.
    """
    for rank, one in enumerate(found["sections"], start=1):
        section, hit = one["section"], one["hit"] or {}
        pair = next((part for part in hit.get("parts", ()) if part["kind"] == "section_pair"), None) or {}
        target = pair.get("target_section") or {}
        yield {
            "query_id": found["query"]["id"],
            "rank": rank,
            "novelty": one["novelty"],
            "status": found["status"],
            "section": section["index"],
            "heading": section["heading"] or None,
            "kind": one["kind"],
            "start": section["start"],
            "end": section["end"],
            "page": section["page"],
            "doc_id": hit.get("id"),
            "title": hit.get("title"),
            "score": hit.get("score"),
            "target_section": target.get("index"),
            "target_heading": target.get("heading") or None,
            "target_page": target.get("page"),
            "contribution": pair.get("contribution"),
            "similarity": pair.get("similarity"),
            "threshold": pair.get("threshold"),
            "words": "; ".join(word["term"] for word in pair.get("words", ())) or None,
        }


def as_cell(value: Any) -> Any:  # noqa: ANN401
    """A value as a safe cell of CSV: a text that a spreadsheet would evaluate as a formula gets an apostrophe."""
    if not isinstance(value, str):
        return value
    text = safe(value, lines=True)
    return f"'{text}" if text.startswith(_FORMULA) else text


def _section(side: str, section: Mapping[str, Any] | None) -> dict[str, Any]:
    found = section or {}
    return {
        f"{side}_section": found.get("index"),
        f"{side}_heading": found.get("heading") or None,
        f"{side}_start": found.get("start"),
        f"{side}_end": found.get("end"),
        f"{side}_page": found.get("page"),
    }


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


def part_frame(result: Result, *, n_pairs: int | None = N_SNIPPETS) -> pandas.DataFrame:
    """A row for each part, see `engine.report.rows`.

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
