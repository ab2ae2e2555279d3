#!/usr/bin/env bash
# panflute: stringify() of a table of fees is "LakePond56", one word, and the words of a footnote stand in the middle of the sentence.
#
# Expected: stringify() is "the raw text version of an element" for filters. Paragraphs are parted, terms and definitions get a colon, and so
# cells, items and lines are parted too, as in pandoc's own plain text; a note is left out or stands apart.
# What happens: cells of tables, lines of verse, items of tight lists, and a block of code with what is behind it follow one another without
# a blank: two numbers become a third one. A note is put where its mark is, with the end of a paragraph, so the sentence is cut in two
# and the word before the note is glued to it. A loose list, with blank lines between its items, is parted.
# Who meets this: whoever makes text for an index in a filter of pandoc, one element after the other.
# Versions: panflute 2.3.1, pandoc 3.9 by pypandoc-binary 1.17. Source: none found; seen by running this.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check panflute==2.3.1 pypandoc-binary==1.17 2>/dev/null

"$folder/venv/bin/python" - <<'PYTHON'
import io
from importlib.metadata import version

import panflute
import pypandoc

TEXTS = {
    "| Lake | Pond |\n|------|------|\n| 5 | 6 |\n": "LakePond56",
    "- Lake\n- Pond\n": "LakePond",
    "- Lake\n\n- Pond\n": "Lake\n\nPond\n\n",
    "Lake\n:   Open water\n": "- Lake: Open water",
    "| Water falls\n| Boats wait\n": "Water fallsBoats wait",
    "    open(gate)\n\nBoats wait.\n": "open(gate)Boats wait.\n\n",
    "The gate[^1] is open.\n\n[^1]: Act of 1911.\n": "The gateAct of 1911.\n\n is open.\n\n",
}
print("panflute", version("panflute"), "pandoc", pypandoc.get_pandoc_version())
seen = {}
for markdown in TEXTS:
    tree = pypandoc.convert_text(markdown, "json", format="markdown")
    seen[markdown] = panflute.stringify(panflute.load(io.StringIO(tree)))
    plain = pypandoc.convert_text(markdown, "plain", format="markdown").split()
    print(f"{markdown!r}: {seen[markdown]!r}, words of pandoc {plain}")
assert seen == TEXTS
PYTHON
