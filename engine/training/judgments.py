"""Which targets belong to which query: tab-separated files of judgments, and lists of query ids. Nothing else."""

from __future__ import annotations

import csv
import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TypeAlias

from engine.errors import TrainingError

Judgments: TypeAlias = dict[str, dict[str, int]]  # query id -> target id -> relevance

_COLUMNS = ("query_id", "doc_id")


def read_judgments(path: Path, queries: Collection[str] | None = None) -> Judgments:
    """Read pairs of a query and a target, with their relevance.

    The file has a header line and the columns `query_id`, `doc_id` and, where pairs
    differ, `relevance`; without it every pair has relevance 1.

    Args:
        path: of the file.
        queries: keep only these, in their order; each stands in the result, if only with no target.

    Raises:
        TrainingError: the file is not there, or a column or a number is missing.
    """
    judged: Judgments = {query_id: {} for query_id in queries or ()}
    try:
        with path.open(encoding="utf-8", newline="") as lines:
            rows = csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
            _check_columns(path, rows.fieldnames or ())
            for row in rows:
                if queries is None:
                    judged.setdefault(row["query_id"], {})
                if row["query_id"] in judged:
                    judged[row["query_id"]][row["doc_id"]] = int(row.get("relevance") or 1)
    except FileNotFoundError:
        raise TrainingError(f"there is no file {path}; it should name pairs as query_id <tab> doc_id") from None
    except (ValueError, UnicodeDecodeError) as error:
        raise TrainingError(
            f"{path} cannot be read as judgments ({error}); relevance must be a whole number"
        ) from error
    return judged


def _check_columns(path: Path, found: Collection[str]) -> None:
    missing = [column for column in _COLUMNS if column not in found]
    if missing:
        raise TrainingError(
            f"{path} has the columns {', '.join(found) or 'none'}, not {' and '.join(missing)}; "
            "its first line must be: query_id <tab> doc_id [<tab> relevance]"
        )


def read_splits(path: Path) -> Mapping[str, list[str]]:
    """Read the query ids of each split, as {"train": [...], "valid": [...], "test": [...]}.

    Raises:
        TrainingError: the file is not there, or has another form.
    """
    try:
        splits = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise TrainingError(f"there is no file {path}; it should name the query ids of each split") from None
    except ValueError as error:
        raise TrainingError(f"{path} is not JSON: {error}") from error
    if not isinstance(splits, dict) or not all(isinstance(ids, list) for ids in splits.values()):
        raise TrainingError(f'{path} must be an object of lists of query ids, as {{"train": ["a"], "valid": ["b"]}}')
    return splits
