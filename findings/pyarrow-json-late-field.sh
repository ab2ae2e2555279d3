#!/usr/bin/env bash
# pyarrow: of one JSON Lines file read_json() has a column that dataset() does not: one whose first value is behind the first MiB.
#
# Expected: pyarrow.json.read_json() and pyarrow.dataset.dataset(format="json") are two ways to the same reader, and give the same
# columns. Or a field that the schema does not know is an error, as a changed type is ("changed from null to string").
# What happens: the dataset takes its schema from the first block of 1 MiB and leaves out all other fields without a warning. The
# count of rows is right. If the same lines are shuffled, the column is there.
# Who meets this: corpora whose optional field (year, retracted, citations) starts late, sorted by age for example.
# Versions: pyarrow 26.0.1. Source: none found; issue 40107 of apache/arrow is about types that change from file to file.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pyarrow==26.0.1 2>/dev/null

"$folder/venv/bin/python" - "$folder" <<'PYTHON'
import json
import random
import sys
from pathlib import Path

import pyarrow
import pyarrow.dataset
import pyarrow.json

rows = [{"id": number, "text": "a" * 100} | ({"year": 1991} if number >= 20_000 else {}) for number in range(30_000)]
late, early = Path(sys.argv[1], "late.jsonl"), Path(sys.argv[1], "early.jsonl")
late.write_text("".join(json.dumps(row) + "\n" for row in rows))
random.Random(0).shuffle(rows)
early.write_text("".join(json.dumps(row) + "\n" for row in rows))


def columns(path: Path) -> tuple[list[str], list[str]]:
    read = pyarrow.json.read_json(path)
    scanned = pyarrow.dataset.dataset(path, format="json").to_table()
    assert read.num_rows == scanned.num_rows == 30_000
    for name, table in (("read_json", read), ("dataset", scanned)):
        years = table["year"].drop_null().length() if "year" in table.column_names else 0
        print(f"{path.name}, {name}: columns {', '.join(table.column_names)}; {years} years")
    return read.column_names, scanned.column_names


print("pyarrow", pyarrow.__version__)
assert all("year" in names for names in columns(early))
assert columns(late) == (["id", "text", "year"], ["id", "text"])
PYTHON
