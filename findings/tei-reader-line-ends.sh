#!/usr/bin/env bash
# tei_reader: a line end between two words of a TEI paragraph is no blank: "The old" and "gate" on two lines are "The oldgate".
#
# Expected: in XML text a line end is white space, so a paragraph that an editor wraps reads as one that is on one line. A reader
# made for TEI also knows that a choice has one reading, and that <lb/>, cells and verses part words.
# What happens: line ends are removed, and so is a blank between two elements: "<hi>old</hi> <hi>gate</hi>" is "oldgate". The error
# and its correction are one word ("bakrbaker"), and so are cells, verses, and words around <lb/> and <pb/>. Notes are gone.
# Who meets this: indexers of editions and correspondence, whose files are wrapped by hand or by a formatter without indentation.
# Versions: tei_reader 0.0.17. Source: tei_reader/models/element.py, replace('\n', '').
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check tei_reader==0.0.17 2>/dev/null

"$folder/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

from tei_reader import TeiReader

HEADER = "<teiHeader><fileDesc><titleStmt><title>Gates</title></titleStmt></fileDesc></teiHeader>"
TEXTS = {
    "<p>The old\ngate is of oak.</p>": "The oldgate is of oak.",
    "<p>The <hi>old</hi>\n<hi>gate</hi> is of oak.</p>": "The oldgate is of oak.",
    "<p>The <hi>old</hi> <hi>gate</hi> is of oak.</p>": "The oldgate is of oak.",
    "<p>He was a <choice><sic>bakr</sic><corr>baker</corr></choice>.</p>": "He was a bakrbaker.",
    "<p>The old<lb/>gate</p>": "The oldgate",
    "<lg><l>The gate is old</l><l>and so am I</l></lg>": "The gate is oldand so am I",
    "<table><row><cell>Lake</cell><cell>5</cell></row></table>": "Lake5",
    "<p>The gate<note>Of oak.</note> is old.</p>": "The gate is old.",
    "<p>The old gate is of oak.</p>": "The old gate is of oak.",
}
print("tei_reader", version("tei_reader"))
for body, expected in TEXTS.items():
    tei = f'<TEI xmlns="http://www.tei-c.org/ns/1.0">{HEADER}<text><body>{body}</body></text></TEI>'
    text = TeiReader().read_string(tei).text
    print(f"{body!r}: {text!r}")
    assert text == expected
PYTHON
