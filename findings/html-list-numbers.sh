#!/usr/bin/env bash
# HTML lists: paragraphs 5, 6 and 9 of a law are numbered 5, 6, 7 by html2text and markdownify, 1, 2, 9 by inscriptis, 1, 2, 3 by Resiliparse.
#
# Expected: the number of an item is in the page: <ol start="5"> begins at 5, and <li value="9"> is 9 (HTML Living Standard, 4.4.5 and 4.4.8).
# A converter to text that writes numbers writes these, or none, as get_text() of BeautifulSoup does.
# What happens: html2text and markdownify know start and not value, inscriptis knows value and not start, Resiliparse neither; all of them
# count on and write a number of their own. A list that goes on behind a note begins at 1 again in two of them. With reversed all four
# count upwards. Nothing shows that a number is made up.
# Who meets this: whoever indexes statutes, amendments and minutes: repealed items leave gaps, which value keeps, and quotations begin in
# the middle. A hit then cites a paragraph that says something else.
# Versions: html2text 2025.4.15, markdownify 1.2.3, inscriptis 2.7.6, Resiliparse 2.0.1. Source: none found; seen by running this.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    html2text==2025.4.15 markdownify==1.2.3 inscriptis==2.7.6 resiliparse==2.0.1 beautifulsoup4==4.15.0 2>/dev/null

"$folder/venv/bin/python" - <<'PYTHON'
import re
from importlib.metadata import version

from bs4 import BeautifulSoup
from html2text import html2text
from inscriptis import get_text
from markdownify import markdownify
from resiliparse.extract.html2text import extract_plain_text

READERS = {"html2text": html2text, "markdownify": markdownify, "inscriptis": get_text, "resiliparse": extract_plain_text}
ITEMS = "<li{}>Boats are let.</li>", "<li{}>Nets are free.</li>", "<li{}>Gates are shut.</li>"
CONTINUED = "<ol><li>Boats are let.</li></ol><p>Note.</p><ol start='2'><li>Nets are free.</li></ol>"


def shown(name: str, body: str) -> list[int]:
    """The numbers before the items."""
    text = READERS[name](f"<html><body>{body}</body></html>")
    return [int(number) for number in re.findall(r"(\d+)\. (?:Boats|Nets|Gates)", text)]


def numbers(body: str) -> list[list[int]]:
    found = [shown(name, body) for name in READERS]
    print(body, dict(zip(READERS, found)), sep="\n    ")
    return found


print(*(f"{name} {version(name)}" for name in READERS), sep=", ")
plain = "".join(ITEMS).format("", "", "")
with_value = "".join(ITEMS).format("", "", " value='9'")
assert numbers(f"<ol>{plain}</ol>") == [[1, 2, 3]] * 4
assert numbers(f"<ol start='5'>{plain}</ol>") == [[5, 6, 7], [5, 6, 7], [1, 2, 3], [1, 2, 3]]
assert numbers(f"<ol start='5'>{with_value}</ol>") == [[5, 6, 7], [5, 6, 7], [1, 2, 9], [1, 2, 3]]
assert numbers(CONTINUED) == [[1, 2], [1, 2], [1, 1], [1, 1]]
assert numbers(f"<ol reversed>{plain}</ol>") == [[1, 2, 3]] * 4
assert BeautifulSoup(f"<ol start='5'>{with_value}</ol>", "html.parser").get_text(" ") == "Boats are let. Nets are free. Gates are shut."
PYTHON
