#!/usr/bin/env bash
# pdfium, by pypdfium2, finds no character on a page of vertical Japanese whose font is not embedded.
#
# Expected: vertical writing is an old part of PDF (ISO 32000, 9.7.4.3 and 9.7.5: predefined CMaps whose names end in V, here
# UniJIS-UCS2-V). The codes are those of horizontal writing, so the text should come out, at worst in an odd order.
# What happens: the page has its text objects, but the text page has 0 characters and get_text_range() returns "", without
# a warning. The same words in the same font with the horizontal CMap (UniJIS-UCS2-H) are all there. pdfminer.six reads both.
# So 0 characters do not mean that a page is a scan: look for text objects on the page too.
# Versions: pypdfium2 5.15.2, reportlab 5.1.0, pdfminer.six 20260107.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    pypdfium2==5.15.2 reportlab==5.1.0 pdfminer.six==20260107 2>/dev/null

"$folder/venv/bin/python" - <<'PYTHON'
import io
from importlib.metadata import version

import pypdfium2
from pdfminer.high_level import extract_text
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfgen import canvas

WORDS = "水門は古く船は毎朝通る"
TEXT_OBJECT = 1  # FPDF_PAGEOBJ_TEXT


def made(*, is_vertical: bool) -> bytes:
    font = UnicodeCIDFont("HeiseiMin-W3", isVertical=is_vertical)
    pdfmetrics.registerFont(font)
    stream = io.BytesIO()
    page = canvas.Canvas(stream)
    page.setFont(font.fontName, 14)
    page.drawString(300, 700, WORDS)
    page.save()
    return stream.getvalue()


print(*(f"{name} {version(name)}" for name in ("pypdfium2", "reportlab", "pdfminer.six")), sep=", ")
found = {}
for way in ("horizontal", "vertical"):
    data = made(is_vertical=way == "vertical")
    page = pypdfium2.PdfDocument(data)[0]
    objects = sum(item.type == TEXT_OBJECT for item in page.get_objects())
    text = page.get_textpage()
    by_pdfminer = "".join(extract_text(io.BytesIO(data)).split())
    found[way] = objects, text.count_chars(), text.get_text_range(), by_pdfminer
    print(f"{way}: {objects} text object, {found[way][1]} characters, {found[way][2]!r}; pdfminer.six: {by_pdfminer!r}")
assert found["horizontal"] == (1, len(WORDS), WORDS, WORDS)
assert found["vertical"][:3] == (1, 0, "")
assert sorted(found["vertical"][3]) == sorted(WORDS)
PYTHON
