#!/usr/bin/env bash
# lxml.html: where 257 elements are open, the whole rest of an HTML page is lost, and no exception is raised.
#
# Expected: parsers of HTML recover. Where one has a limit for nested elements, the text that is nested deeper is lost at worst, or
# the call fails, as it does for XML.
# What happens: the 257th open element ends the page. The text in it, all that follows, and a paragraph that stands right below
# <body> are not in the tree. Only the error log of the parser has a line, and lxml.html.fromstring does not show the log.
# BeautifulSoup keeps the page, by html.parser and by the same lxml, since it feeds the parser and builds a tree of its own.
# Who meets this: an indexer of annual reports of the early 2000s and of long mail threads: layout tables and quotations nest that
# deep, and one word in ten of such a filing is gone, always from its end.
# Versions: lxml 6.1.3 (libxml2 2.14.6), beautifulsoup4 4.14.2.
# Source: pull request 1114 of dgunning/edgartools, issue 11 of mwaldstein/edgarWebR.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check lxml==6.1.3 beautifulsoup4==4.14.2 2>/dev/null

"$folder/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

from bs4 import BeautifulSoup
from lxml import etree, html


def page(levels: int) -> str:
    """A thread of quotations; <html>, <body> and the innermost <p> are open besides."""
    quoted = "".join("<blockquote><p>Someone wrote some days ago:</p>" for _ in range(levels))
    first, last = "<p>Newest message, written today.</p>", "<p>Signature below all quotations.</p>"
    return f"<html><body>{first}{quoted}<p>Oldest message of all.</p>{'</blockquote>' * levels}{last}</body></html>"


READERS = {
    "lxml.html": lambda text: html.fromstring(text).text_content(),
    "BeautifulSoup, lxml": lambda text: BeautifulSoup(text, "lxml").get_text(),
    "BeautifulSoup, html.parser": lambda text: BeautifulSoup(text, "html.parser").get_text(),
}
for name in ("lxml", "beautifulsoup4"):
    print(name, version(name))
print("libxml2", ".".join(map(str, etree.LIBXML_VERSION)))
WHOLE, CUT = (True, True, True), (True, False, False)
for levels in (200, 253, 254, 300):
    text = page(levels)
    for name, read in READERS.items():
        words = read(text)
        found = ("Newest" in words, "Oldest" in words, "Signature" in words)
        print(f"{levels} quotations, {name}: first, deepest and last paragraph there: {found}")
        assert found == (CUT if name == "lxml.html" and levels > 253 else WHOLE), (name, levels)
print("The rest of the page is lost from the 257th open element on, and no call failed.")
PYTHON
