"""Searches a corpus with one of its documents, restricted by metadata: python examples/filter.py [FOLDER]."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import longmatch

DEMO = Path(__file__).parents[1] / "demo/corpus/eips"


def main(folder: Path) -> None:
    """Index the words of a folder and print the hits of its first document, with and without a filter."""
    with (
        tempfile.TemporaryDirectory() as workspace,
        longmatch.build(Path(workspace) / "papers.lm", folder, encode="none") as index,
    ):
        query = next(iter(index))
        for where in (None, {"status": "Final"}, {"number": {">=": 2000, "<": 4000}}):
            result = index.search_id(query, k=3, where=where)
            print(f"{query}, where {where}: {result.n_searched} documents, {result.status}")
            for hit in result:
                print(f"  {hit.rank}  {hit.score:.4f}  {hit.title}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else DEMO)
