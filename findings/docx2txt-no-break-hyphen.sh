#!/usr/bin/env bash
# docx2txt and docx2python: "Smith-Jones" with the hyphen that Word does not break at is "SmithJones", and section "7-103" is section "7103".
#
# Expected: a hyphen is a letter of the text. Word writes the one of Ctrl+Shift+hyphen as an element of its own, <w:noBreakHyphen/>, beside
# <w:tab/> and <w:br/>, which both read. python-docx gives "-" for it and mammoth U+2011.
# What happens: neither knows the element and drops it without a trace. The halves are joined, so numbers of sections, dockets, statutes and
# telephones become other numbers.
# Who meets this: whoever indexes contracts, briefs and statutes: typists put this hyphen into names and citations, which must not be divided,
# so it is just these that cannot be found.
# Versions: docx2txt 0.9, docx2python 3.7.1, python-docx 1.2.0, mammoth 1.13.0.
# Source: pull request 34 of ankushshah89/python-docx2txt (open); none found for docx2python.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    docx2txt==0.9 docx2python==3.7.1 python-docx==1.2.0 mammoth==1.13.0 2>/dev/null

"$folder/venv/bin/python" -W ignore - "$folder" <<'PYTHON'
import sys
from importlib.metadata import version
from pathlib import Path

import docx
import docx2txt
import mammoth
from docx.oxml import OxmlElement
from docx2python import docx2python

file = Path(sys.argv[1], "brief.docx")


def by_mammoth(path: Path) -> str:
    with path.open("rb") as stream:
        return mammoth.extract_raw_text(stream).value


def by_docx2python(path: Path) -> str:
    with docx2python(path) as content:
        return content.text


READERS = {
    "docx2txt": docx2txt.process,
    "docx2python": by_docx2python,
    "python-docx": lambda path: docx.Document(path).paragraphs[0].text,
    "mammoth": by_mammoth,
}
HYPHENS = {"docx2txt": "", "docx2python": "", "python-docx": "-", "mammoth": "\u2011"}
print(*(f"{name} {version(name)}" for name in READERS), sep=", ")
for first, second in (("Smith", "Jones"), ("section 7", "103")):
    for element in ("w:tab", "w:noBreakHyphen"):
        document = docx.Document()
        run = document.add_paragraph().add_run(first)
        run._r.append(OxmlElement(element))
        run.add_text(second)
        document.save(file)
        for name, read in READERS.items():
            text = read(file).strip()
            print(f"{element}, {name}: {text!r}")
            assert text == first + ("\t" if element == "w:tab" else HYPHENS[name]) + second
PYTHON
