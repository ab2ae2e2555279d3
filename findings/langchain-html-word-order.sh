#!/usr/bin/env bash
# langchain-text-splitters: "No person <b>shall</b> fish here" is "No person fish here", then "shall"; another splitter puts "shall" first.
#
# Expected: three classes cut HTML at its headings. They differ in headings and lengths; the words of a sentence stay in their order, as
# get_text() of BeautifulSoup, on which all three stand, has them, and text stays below the heading above it.
# What happens: HTMLHeaderTextSplitter writes the text that stands right in an element as one piece and what is in its children behind it, so
# words in <b>, <i>, <a>, <sup> leave their sentence. HTMLSemanticPreservingSplitter writes the children first. Text right in <body>
# between two paragraphs goes before the first heading in one and behind the last in the other. HTMLSectionSplitter is right.
# Who meets this: whoever cuts statutes, encyclopedias or manuals for retrieval: vectors and quotations are of sentences nobody wrote.
# Versions: langchain-text-splitters 1.1.3, beautifulsoup4 4.14.2. Source: issue 38404 of langchain-ai/langchain, for the second class.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    langchain-text-splitters==1.1.3 beautifulsoup4==4.14.2 lxml==6.1.3 2>/dev/null

"$folder/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

from bs4 import BeautifulSoup
from langchain_text_splitters import HTMLHeaderTextSplitter, HTMLSectionSplitter, HTMLSemanticPreservingSplitter

HEADERS = [("h1", "part")]
PAGE = """<html><body><h1>Fishing</h1><p>No person <b>shall</b> fish <i>except</i> by line.</p>
Bare words.<h1>Fees</h1><p>The fee is due.</p></body></html>"""


def parts(splitter: HTMLHeaderTextSplitter | HTMLSectionSplitter | HTMLSemanticPreservingSplitter) -> dict[str, str]:
    """The words below each heading."""
    found: dict[str, str] = {}
    for document in splitter.split_text(PAGE):
        name = document.metadata.get("part", "no heading")
        found[name] = " ".join([found.get(name, ""), *document.page_content.split()]).strip()
    print(type(splitter).__name__, found)
    return found


print("langchain-text-splitters", version("langchain-text-splitters"))
print("BeautifulSoup:", " ".join(BeautifulSoup(PAGE, "lxml").get_text(" ").split()))
by_section = parts(HTMLSectionSplitter(HEADERS))
by_header = parts(HTMLHeaderTextSplitter(HEADERS))
by_meaning = parts(HTMLSemanticPreservingSplitter(HEADERS))
assert by_section["Fishing"] == "Fishing No person shall fish except by line. Bare words."
assert by_header["Fishing"].endswith("No person fish by line. shall except") and by_header["no heading"] == "Bare words."
assert by_meaning == {"Fishing": "shall except No person fish by line.", "Fees": "The fee is due. Bare words."}
PYTHON
