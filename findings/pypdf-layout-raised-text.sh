#!/usr/bin/env bash
# pypdf: in layout mode "The court held [12] that the gate is open", with a raised 12, is "12 that the gate is open" above "The court held".
#
# Expected: a superscript is part of its line, or at worst a line of its own. Layout mode follows the look of the page, and it puts
# runs whose heights differ by less than a letter on one line, as it does where a superscript is moved up by Td.
# What happens: with the operator for raised text (Ts) the rest of the line moves up with it, though Ts is set back to 0 behind the note, and
# the two parts of the line change places. A subscript is the same downwards: "H2O flows" ends in two lines. No letter is lost. The plain
# mode of pypdf and PyMuPDF read the same page as one line.
# Who meets this: whoever uses layout mode for its columns and tables, on papers and opinions with footnotes made by ReportLab and other
# programs that write Ts: every sentence with a note is cut and turned around.
# Versions: pypdf 7.1.1, PyMuPDF 2.0, reportlab 5.1.0. Source: none found for pypdf; issue 164 of pdfminer/pdfminer.six is the same there.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pypdf==7.1.1 pymupdf==2.0 reportlab==5.1.0 2>/dev/null

"$folder/venv/bin/python" - <<'PYTHON'
import io
from importlib.metadata import version

import pymupdf
from pypdf import PdfReader
from reportlab.pdfgen.canvas import Canvas


def lines(first: str, note: str, rest: str, rise: float, by_operator: bool) -> tuple[list[str], list[str], list[str]]:
    """The lines of a page by both modes of pypdf and by PyMuPDF, single blanks between words."""
    file = io.BytesIO()
    canvas = Canvas(file)
    text = canvas.beginText(72, 700)
    text.setFont("Helvetica", 12)
    text.textOut(first)
    text.setFont("Helvetica", 8)
    if by_operator:
        text.setRise(rise)
        text.textOut(note)
        text.setRise(0)
    else:
        text.setTextOrigin(72 + canvas.stringWidth(first, "Helvetica", 12), 700 + rise)
        text.textOut(note)
        text.setTextOrigin(text.getX(), 700)
    text.setFont("Helvetica", 12)
    text.textOut(rest)
    canvas.drawText(text)
    canvas.save()
    page = PdfReader(file).pages[0]
    layout, plain = page.extract_text(extraction_mode="layout"), page.extract_text()
    other = pymupdf.open(stream=file.getvalue(), filetype="pdf")[0].get_text()
    found = tuple([" ".join(line.split()) for line in text.splitlines() if line.strip()] for text in (layout, plain, other))
    print(f"raised by {rise}, by {'Ts' if by_operator else 'a new origin'}: layout {found[0]}, plain {found[1]}, PyMuPDF {found[2]}")
    return found


print(*(f"{name} {version(name)}" for name in ("pypdf", "pymupdf", "reportlab")), sep=", ")
NOTE = ("The court held", "12", " that the gate is open.")
for by_operator in (True, False):
    layout, plain, other = lines(*NOTE, 4, by_operator)
    assert plain == other == ["The court held12 that the gate is open."]
    if by_operator:
        assert layout == ["12 that the gate is open.", "The court held"]
    else:
        assert [line.replace(" ", "") for line in layout] == ["Thecourtheld12thatthegateisopen."]
layout, plain, other = lines("Below the gate H", "2", "O flows.", -3, True)
assert layout == ["Below the gate H", "2O flows."] and plain == other == ["Below the gate H2O flows."]
PYTHON
