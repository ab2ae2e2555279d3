"""Readers of judgments (tab-separated queries and targets) and of splits (lists of query ids). Nothing else."""

from __future__ import annotations

import csv
import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TypeAlias

from engine.errors import TrainingError

Judgments: TypeAlias = Mapping[str, Mapping[str, int]]  # query id -> target id -> relevance; 0 or less is not relevant

_COLUMNS = ("query_id", "doc_id")
_FORM = "query_id <tab> doc_id [<tab> relevance]"


def read_judgments(path: Path, queries: Collection[str] | None = None) -> Judgments:
    """Read pairs of a query and a target, with their relevance.

    The file has a header line and the columns `query_id`, `doc_id` and, optionally,
    `relevance`; without that column every pair has relevance 1.

    Args:
        path: the file, in UTF-8.
        queries: keep only these, in their order; the result has each of them, some perhaps without targets.

    Raises:
        TrainingError: the file does not exist or cannot be read, a column or an id is missing, or a relevance
            is not a whole number.
    """
    judged: dict[str, dict[str, int]] = {query_id: {} for query_id in queries or ()}
    try:
        with path.open(encoding="utf-8-sig", newline="") as lines:
            rows = csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
            _check_columns(path, rows.fieldnames or ())
            for row in rows:
                query_id, doc_id, relevance = _parsed(f"line {rows.line_num} of {path}", row)
                if queries is None:
                    judged.setdefault(query_id, {})
                if query_id in judged:
                    judged[query_id][doc_id] = relevance
    except FileNotFoundError:
        raise TrainingError(f"there is no file {path}; it should name pairs as {_FORM}") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise TrainingError(f"{path} cannot be read as judgments ({error}); write it in UTF-8 as {_FORM}") from error
    return judged


def _check_columns(path: Path, found: Collection[str]) -> None:
    missing = [column for column in _COLUMNS if column not in found]
    if missing:
        raise TrainingError(
            f"{path} has the columns {', '.join(found) or 'none'}, not {' and '.join(missing)}; "
            f"its first line must be: {_FORM}"
        )


def _parsed(place: str, row: Mapping[str, str | None]) -> tuple[str, str, int]:
    query_id, doc_id, relevance = row["query_id"], row["doc_id"], row.get("relevance") or "1"
    if not query_id or not doc_id:
        raise TrainingError(f"{place} names the query {query_id!r} and the target {doc_id!r}; it must be: {_FORM}")
    try:
        return query_id, doc_id, int(relevance)
    except ValueError:
        raise TrainingError(f"{place} has relevance {relevance!r}; it must be a whole number") from None


def read_splits(path: Path) -> Mapping[str, list[str]]:
    """Read the query ids of each split, as {"train": [...], "valid": [...], "test": [...]}.

    Raises:
        TrainingError: the file does not exist, or has another form.
    """
    try:
        splits = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise TrainingError(f"there is no file {path}; it should name the query ids of each split") from None
    except ValueError as error:
        raise TrainingError(f"{path} is not JSON: {error}") from error
    if not isinstance(splits, dict) or not all(_are_ids(ids) for ids in splits.values()):
        raise TrainingError(f'{path} must be an object of lists of query ids, as {{"train": ["a"], "valid": ["b"]}}')
    return splits


def _are_ids(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)
