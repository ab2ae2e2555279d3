#!/usr/bin/env bash
# pubmed_parser: of a table whose groups of rows share a first cell, parse_pubmed_table() drops the first row of each group, numbers and all.
#
# Expected: table_values has the rows of the table. A cell that spans rows (rowspan) is repeated, or is missing from the rows below, which
# are then shorter. Cells of a row that are headers (<th>) are in it.
# What happens: the most frequent number of cells is taken for the width, and each row of another width is left out. In groups of three, the
# row that names the group is the longest, so it is gone and the other two stay: the name and its first values are in no row. A row
# across all columns goes too. Cells that are <th> in the body are never read. Nothing is logged; table_xml has all of it.
# Who meets this: whoever makes tables of PubMed Central searchable: the names of groups (a gene, a country, a dose) are what one seeks.
# Versions: pubmed_parser 0.5.1. Source: table_to_df in pubmed_parser/pubmed_oa_parser.py; issue 42 of titipata/pubmed_parser has headers.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pubmed_parser==0.5.1 lxml==6.1.3 2>/dev/null

"$folder/venv/bin/python" - "$folder/article.nxml" <<'PYTHON'
import sys
from importlib.metadata import version
from pathlib import Path

from pubmed_parser import parse_pubmed_table

GROUPED = """<tr><td rowspan="3">Norway</td><td>2019</td><td>12.5</td></tr><tr><td>2020</td><td>13.1</td></tr><tr><td>2021</td><td>14</td></tr>
<tr><td rowspan="3">Iceland</td><td>2019</td><td>7.2</td></tr><tr><td>2020</td><td>7.9</td></tr><tr><td>2021</td><td>8</td></tr>"""
PLAIN = "".join(
    f"<tr><td>{country}</td><td>{year}</td><td>{value}</td></tr>"
    for country, year, value in (("Norway", 2019, 12.5), ("Norway", 2020, 13.1), ("Iceland", 2019, 7.2))
)


def rows(body: str) -> list[list[str]]:
    table = f"<table><thead><tr><th>Country</th><th>Year</th><th>Catch</th></tr></thead><tbody>{body}</tbody></table>"
    Path(sys.argv[1]).write_text(
        '<article><front><article-meta><article-id pub-id-type="pmc">1</article-id></article-meta></front><body>'
        f'<table-wrap id="t1"><label>Table 1</label><caption><p>Catches.</p></caption>{table}</table-wrap></body></article>'
    )
    return parse_pubmed_table(sys.argv[1])[0]["table_values"]


print("pubmed_parser", version("pubmed_parser"))
plain, grouped = rows(PLAIN), rows(GROUPED)
print("each row has its country:", plain)
print("two countries, three rows each:", grouped)
assert plain == [["Norway", "2019", "12.5"], ["Norway", "2020", "13.1"], ["Iceland", "2019", "7.2"]]
assert grouped == [["2020", "13.1"], ["2021", "14"], ["2020", "7.9"], ["2021", "8"]]
headed = rows(PLAIN.replace("<td>Norway</td>", '<th scope="row">Norway</th>').replace("<td>Iceland</td>", '<th scope="row">Iceland</th>'))
print("with countries as headers of rows:", headed)
assert headed == [row[1:] for row in plain]
across = rows('<tr><td colspan="3">Landings in thousand tonnes</td></tr>' + PLAIN)
print("with a row across all columns:", across)
assert across == plain
PYTHON
