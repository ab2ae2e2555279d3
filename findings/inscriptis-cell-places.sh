#!/usr/bin/env bash
# inscriptis: in a table, the annotation of a cell of two lines starts or ends in the wrong words: "y carries cars." for "A ferry carries cars."
#
# Expected: get_annotated_text() gives a text and labels of [start, end, name], and text[start:end] is what the element says, as it is outside
# of tables and in cells of one line.
# What happens: a table is laid out in columns, so a second line of a cell stands below the next column's first one. Places of a cell are
# moved as a whole by the widths of the first line. An annotated cell with <br> loses its first letters; a paragraph in a cell ends
# in the next line, in another column. Annotations of single words (<b>) are right in the same cell. The text itself is right.
# Who meets this: whoever keeps places of definitions, entities or headings while turning statutes and annual reports into text.
# Versions: inscriptis 2.7.6. Source: issue 92 of weblyzard/inscriptis (open).
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check inscriptis==2.7.6 lxml==6.1.3 2>/dev/null

"$folder/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

from inscriptis import get_annotated_text
from inscriptis.model.config import ParserConfig


def annotated(html: str) -> dict[str, list[str]]:
    """What text[start:end] is for each kind of annotated element, without blanks around it."""
    rules = {tag: [tag] for tag in ("b", "p", "td")}
    page = get_annotated_text(html, ParserConfig(annotation_rules=rules))
    print(page["text"].rstrip())
    found: dict[str, list[str]] = {tag: [] for tag in rules}
    for start, end, tag in page["label"]:
        found[tag].append(page["text"][start:end].strip())
    print("   ", found)
    return found


def table(cell: str) -> str:
    return f"<table><tr><td>Term</td><td>{cell}</td></tr></table>"


FERRY, PORT = "A <b>ferry</b> carries cars.", "A <b>port</b> is a harbour."
print("inscriptis", version("inscriptis"))
assert annotated(f"<p>{FERRY}</p><p>{PORT}</p>")["p"] == ["A ferry carries cars.", "A port is a harbour."]
assert annotated(table(FERRY))["td"] == ["Term", "A ferry carries cars."]
lines = annotated(table(f"{FERRY}<br>{PORT}"))
assert lines["td"] == ["Term", "y carries cars.\n      A port is a harbour."] and lines["b"] == ["ferry", "port"]
paragraphs = annotated(table(f"<p>{FERRY}</p><p>{PORT}</p>"))
assert paragraphs["p"] == ["A ferry carries cars.\nT", "A port is a harbour."] and paragraphs["b"] == ["ferry", "port"]
assert paragraphs["td"] == ["Term", "A port is a harbour."]
PYTHON
