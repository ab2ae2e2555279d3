#!/usr/bin/env bash
# pdfminer.six: extract_text() glues the lines and words of a form XObject into one string.
#
# Expected: a form XObject draws the same letters at the same places as the page itself would. Its text comes out with the same
# line breaks, or not at all, as the option all_texts (False) says of text in figures.
# What happens: the form becomes an LTFigure whose letters are written one after the other, without an analysis of the layout:
# the last word of a line and the first of the next one become one word. With all_texts=True the lines are right.
# Who meets this: PDFs made of placed pages (imposed, stamped, merged), whose whole text is in forms.
# Versions: pdfminer.six 20260107. Source: issues 446 and 799 of pdfminer/pdfminer.six.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pdfminer.six==20260107 reportlab==5.1.0 2>/dev/null

"$folder/venv/bin/python" - <<'PYTHON'
import io
from importlib.metadata import version

from pdfminer.high_level import extract_text
from pdfminer.layout import LAParams
from reportlab.pdfgen.canvas import Canvas

LINES = ("The river ferry", "crosses every hour", "until late autumn")


def text_of(form: bool, all_texts: bool = False) -> str:
    stream = io.BytesIO()
    canvas = Canvas(stream, pagesize=(300, 200))
    if form:
        canvas.beginForm("lines", 0, 0, 300, 200)
    for row, line in enumerate(LINES):
        canvas.drawString(20, 150 - 14 * row, line)
    if form:
        canvas.endForm()
        canvas.doForm("lines")
    canvas.save()
    text = extract_text(io.BytesIO(stream.getvalue()), laparams=LAParams(all_texts=all_texts)).strip()
    print(f"form {form}, all_texts {all_texts}: {text!r}")
    return text


print("pdfminer.six", version("pdfminer.six"))
assert text_of(form=False).split("\n") == list(LINES)
assert text_of(form=True, all_texts=True).split("\n") == list(LINES)
assert text_of(form=True) == "".join(LINES)
PYTHON
