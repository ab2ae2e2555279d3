#!/usr/bin/env bash
# docling-core: the chunk of a table "Repealed sections: 5, 9, 12" of one column is "5 = 9. 5 = 12": the heading is gone and 5 equals 9.
#
# Expected: HierarchicalChunker writes a table as row, column = cell, for the row's first cell and the column's heading. For a table of one column
# that leaves the heading and each value ("Repealed sections = 5"), and all words are in the chunk.
# What happens: the first value takes the place of the heading and each other one is set equal to it. In wider tables the heading of
# the first column is in no chunk either: of "Place, Fee; Lake, 5" it is "Lake, Fee = 5", and of a synopsis of two drafts only the right one is
# named. A table without headings gets numbers for them: "Lake, 1 = 5". Markdown of the same document has all words.
# Who meets this: whoever retrieves over chunks of Docling: lists of sections, holdings and criteria are tables of one column in statutes and
# reports. A query for "repealed" does not find the list, and a reader, or a model, is told that section 5 is section 9.
# Versions: docling-core 2.104.0. Source: pull request 526 of docling-project/docling-core, which wants the heading and the values; issue 528 there
# (open) and issue 1240 of docling-project/docling have wider tables.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check 'docling-core[chunking]==2.104.0' 2>/dev/null

"$folder/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

from docling_core.transforms.chunker.hierarchical_chunker import HierarchicalChunker
from docling_core.types.doc.document import DoclingDocument, TableCell, TableData

SECTIONS = [["Repealed sections"], ["5"], ["9"], ["12"]]
FEES = [["Place", "Fee"], ["Lake", "5"], ["Pond", "6"]]


def chunk(rows: list[list[str]], headings: int = 1) -> str:
    """The chunk of a table whose first rows are headings; its Markdown has all of its words."""
    cells = [
        TableCell(
            text=text,
            start_row_offset_idx=row,
            end_row_offset_idx=row + 1,
            start_col_offset_idx=column,
            end_col_offset_idx=column + 1,
            column_header=row < headings,
        )
        for row, texts in enumerate(rows)
        for column, text in enumerate(texts)
    ]
    document = DoclingDocument(name="act")
    document.add_table(data=TableData(table_cells=cells, num_rows=len(rows), num_cols=len(rows[0])))
    assert all(text in document.export_to_markdown() for texts in rows for text in texts)
    (only,) = HierarchicalChunker().chunk(document)
    print(rows, f"with {headings} rows of headings:", only.text)
    return only.text


print("docling-core", version("docling-core"))
assert chunk(SECTIONS) == "5 = 9. 5 = 12"
assert chunk(FEES) == "Lake, Fee = 5. Pond, Fee = 6"
assert chunk(FEES[1:], headings=0) == "Lake, 1 = 5. Pond, 1 = 6"
assert chunk(SECTIONS[:1]) == "Repealed sections"
PYTHON
