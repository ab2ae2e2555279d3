#!/usr/bin/env bash
# pypdfium2: get_text_bounded() of a turned page has one line end for all lines, "of the ferryRow 3 of fees", where get_text_range() has each.
#
# Expected: without a box both methods give the text of the whole page. A page that is turned (/Rotate 90), with letters that stand upright on
# it, reads as it looks, line by line, as it does for PyMuPDF, pdfminer.six, pypdf and get_text_range().
# What happens: behind the first line end get_text_bounded() sets nothing between lines, neither a line end nor a blank: the last word of a line
# and the first of the next are one word. It is the same for 90 and for 270 degrees, and with a box; upside
# down (180) and unturned pages are right.
# Who meets this: whoever reads regions (columns, cells, pages without their head) of reports, budgets and theses, whose wide tables are on
# turned pages: "5" at a line end and "12 nets" are "512 nets", and neither is found.
# Versions: pypdfium2 5.15.2, pypdf 7.1.1, PyMuPDF 2.0, pdfminer.six 20260107, reportlab 5.1.0. Source: none found; issue 149 of
# pypdfium2-team/pypdfium2 was another fault of the same method on turned pages.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    pypdfium2==5.15.2 pypdf==7.1.1 PyMuPDF==2.0 pdfminer.six==20260107 reportlab==5.1.0 2>/dev/null

"$folder/venv/bin/python" - 2>/dev/null <<'PYTHON'
import io
from importlib.metadata import version

import pymupdf
from pdfminer.high_level import extract_text
from pypdf import PdfReader
from pypdfium2 import PdfDocument
from reportlab.pdfgen.canvas import Canvas

LINES = [f"Row {number} of fees for the use of the ferry" for number in range(1, 6)]
WIDTH, HEIGHT = 400, 300  # as it is seen


def page(turned: int) -> bytes:
    """A page of five lines that stand upright on the screen; the paper is turned by so many degrees."""
    stream = io.BytesIO()
    canvas = Canvas(stream, pagesize=(WIDTH, HEIGHT))
    canvas.setPageRotation(turned)  # turns the size too
    canvas.translate(*{0: (0, 0), 90: (HEIGHT, 0), 180: (WIDTH, HEIGHT), 270: (0, WIDTH)}[turned])
    canvas.rotate(turned)
    for place, line in enumerate(LINES):
        canvas.drawString(40, 240 - 16 * place, line)
    canvas.save()
    return stream.getvalue()


def lines(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


NAMES = ("pypdfium2", "pypdf", "PyMuPDF", "pdfminer.six", "reportlab")
print(*(f"{name} {version(name)}" for name in NAMES), sep=", ")
for turned in (0, 180, 90, 270):
    data = page(turned)
    text_page = PdfDocument(data)[0].get_textpage()
    bounded = lines(text_page.get_text_bounded())
    print(f"turned by {turned}: get_text_bounded {bounded}")
    others = [
        text_page.get_text_range(),
        PdfReader(io.BytesIO(data)).pages[0].extract_text(),
        pymupdf.open(stream=data)[0].get_text(),
        extract_text(io.BytesIO(data)),
    ]
    assert [lines(text) for text in others] == [LINES] * len(others)
    assert bounded == (LINES if turned in (0, 180) else [LINES[0], "".join(LINES[1:])])
PYTHON
