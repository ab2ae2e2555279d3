#!/usr/bin/env bash
# Accents of TeX in PDFs: five programs give three different texts of "René", none has the letter, and NFKC cuts the word.
#
# Expected: a reader sees é, so an extractor gives é, or at least all give the accent on the same side of its letter.
# What happens: with fonts in OT1, TeX prints the accent as a sign of its own (U+00B4), moves back, and prints the letter over it.
# pypdfium2, pypdf and PyMuPDF give accent and letter in that order, pdfplumber the letter first, pdfminer.six puts a blank before
# the accent, so that the name is two words. No program composes them. Unicode normalisation does not either: NFKC writes a
# spacing accent as a blank with a combining accent, so that the text of every program but pdfplumber is cut inside the word, and
# that of pdfplumber behind its last letter.
# Who meets this: an index of papers: of 99 PDFs in public libraries of Zotero 12 have such accents, most in names of authors.
# Versions: pypdfium2 5.15.2, pypdf 7.1.1, pdfminer.six 20260107, pdfplumber 0.11.10, PyMuPDF 2.0, reportlab 5.1.0.
# Source: chapter 9 of the TeXbook on \accent; UAX 15 on compatibility mappings.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pypdfium2==5.15.2 pypdf==7.1.1 pdfminer.six==20260107 \
    pdfplumber==0.11.10 pymupdf==2.0 reportlab==5.1.0 2>/dev/null

"$folder/venv/bin/python" - <<'PYTHON'
import io
import unicodedata
from importlib.metadata import version

import pdfplumber
import pymupdf
from pdfminer.high_level import extract_text
from pypdf import PdfReader
from pypdfium2 import PdfDocument
from reportlab.pdfgen.canvas import Canvas

stream = io.BytesIO()
canvas = Canvas(stream, pagesize=(300, 200))
canvas.setFont("Helvetica", 10)
# Widths of Helvetica: letter 556, accent 333; the accent is moved to the middle of the letter, in thousandths of the type.
canvas._code.append(r"BT /F1 10 Tf 40 100 Td [(Ren) -111 (\264) 444 (e sees rivers)] TJ ET")
canvas.save()
data = stream.getvalue()
texts = {
    "pypdfium2": PdfDocument(data)[0].get_textpage().get_text_range(),
    "pypdf": PdfReader(stream).pages[0].extract_text(),
    "pdfminer.six": extract_text(stream),
    "pdfplumber": pdfplumber.open(stream).pages[0].extract_text(),
    "pymupdf": pymupdf.open(stream=data)[0].get_text(),
}
found = {}
for name, text in texts.items():
    line = text.strip().split("\n")[0]
    found[name] = line
    print(name, version(name), repr(line), "NFKC", unicodedata.normalize("NFKC", line).split())
before, behind, cut = "Ren\u00b4e sees rivers", "Rene\u00b4 sees rivers", "Ren \u00b4e sees rivers"
assert found == {"pypdfium2": before, "pypdf": before, "pdfminer.six": cut, "pdfplumber": behind, "pymupdf": before}
assert unicodedata.normalize("NFKC", before).split()[:2] == ["Ren", "\u0301e"]
assert unicodedata.normalize("NFKC", behind).split()[:2] == ["Rene", "\u0301"]
PYTHON
