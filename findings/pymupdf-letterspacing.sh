#!/usr/bin/env bash
# PyMuPDF: a line that is letterspaced by a sixth of its size is "t h e C O N T R A C T o f l a w", single letters, and no blank is wider.
#
# Expected: PDF has an operator for space between letters (Tc), and the blanks between words are characters of the string. A reader knows both,
# and gives the words, as pypdf and pdfium do for any spacing.
# What happens: a blank is set where a gap is wider than a share of the letter size, whatever made the gap, and the real blank adds none.
# MuPDF does so from 2 points at a size of 12, pdfminer.six from 1.5, where at least three blanks part the words; pdfplumber later.
# Neither "contract" nor any other word of the line is there, and "words" are letters with a box each.
# Who meets this: whoever indexes statutes, German and Russian books and theses: headings, names and stressed words are letterspaced, which
# is what one searches for. Justified lines of narrow columns have it too.
# Versions: PyMuPDF 2.0, pdfminer.six 20260107, pypdf 7.1.1, pypdfium2 5.15.2, reportlab 5.1.0. Source: none found for Tc.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    PyMuPDF==2.0 pdfminer.six==20260107 pypdf==7.1.1 pypdfium2==5.15.2 reportlab==5.1.0 2>/dev/null

"$folder/venv/bin/python" - <<'PYTHON'
import io
from importlib.metadata import version

import pymupdf
from pdfminer.high_level import extract_text
from pypdf import PdfReader
from pypdfium2 import PdfDocument
from reportlab.pdfgen.canvas import Canvas

SIZE, LINE = 12, "the CONTRACT of law"
LETTERS = " ".join(LINE.replace(" ", ""))
READERS = {
    "PyMuPDF": lambda data: pymupdf.open(stream=data)[0].get_text(),
    "pdfminer.six": lambda data: extract_text(io.BytesIO(data)),
    "pypdf": lambda data: PdfReader(io.BytesIO(data)).pages[0].extract_text(),
    "pypdfium2": lambda data: PdfDocument(data)[0].get_textpage().get_text_range(),
}


def page(spacing: float) -> bytes:
    stream = io.BytesIO()
    canvas = Canvas(stream, pagesize=(400, 300))
    canvas.setFont("Helvetica", SIZE)
    canvas.drawString(20, 200, LINE, charSpace=spacing)
    canvas.save()
    return stream.getvalue()


print(*(f"{name} {version(name)}" for name in (*READERS, "reportlab")), sep=", ")
for spacing in (0, 1, 1.5, 2, 3):
    data = page(spacing)
    texts = {name: " ".join(read(data).split()) for name, read in READERS.items()}
    print(f"{spacing} points between letters of {SIZE}: {texts}")
    assert texts["pypdf"] == texts["pypdfium2"] == LINE
    assert texts["PyMuPDF"] == (LETTERS if spacing >= 2 else LINE)
    assert texts["pdfminer.six"] == (LETTERS if spacing >= 1.5 else LINE)
    (first, *_) = pymupdf.open(stream=data)[0].get_text("words")
    assert first[4] == ("t" if spacing >= 2 else "the")
PYTHON
