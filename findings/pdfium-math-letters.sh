#!/usr/bin/env bash
# pypdfium2: positions of characters count UTF-16 units, so each italic letter of a formula moves all later ones by one.
#
# Expected: a text page has as many characters as the string that it returns, so that an index into the string is the index of the
# character, of its box, and of what a search finds.
# What happens: a letter beyond U+FFFF, as the italic x of a formula, is one character of the string and two of the page. Behind
# two of them, count_chars() is two more than len(), search() finds a word two places further than str.find(), and the box at the
# place of str.find() is that of a letter before the word. Read one by one, get_text_range(i, 1) returns such letters as "".
# Who meets this: whoever maps spans of extracted text to boxes, to highlight or to cut by coordinates, on papers that LaTeX set
# with Unicode mathematics. pypdf returns the same string, without such positions.
# Versions: pypdfium2 5.15.2, pypdf 7.1.1. Source: fpdf_text.h of PDFium, which counts characters and search results in UTF-16.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pypdfium2==5.15.2 pypdf==7.1.1 2>/dev/null

"$folder/venv/bin/python" - "$folder/formula.pdf" <<'PYTHON'
import sys
from importlib.metadata import version

import pypdfium2
import pypdf

SHOWN = b"for x in the set let y be its root"
# The glyphs x and y stand for the mathematical italic letters, as in fonts of LaTeX; others for themselves.
TO_UNICODE = b"""/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /Letters def /CMapType 2 def
1 begincodespacerange <00> <FF> endcodespacerange
2 beginbfchar <78> <D835DC65> <79> <D835DC66> endbfchar
2 beginbfrange <20> <77> <0020> <7A> <7A> <007A> endbfrange
endcmap CMapName currentdict /CMap defineresource pop end end"""


def stream(data: bytes) -> bytes:
    return b"<< /Length %d >>\nstream\n%s\nendstream" % (len(data), data)


def write_page(path: str) -> None:
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 500 100] /Contents 4 0 R"
        b" /Resources << /Font << /F1 5 0 R >> >> >>",
        stream(b"BT /F1 20 Tf 20 40 Td (%s) Tj ET" % SHOWN),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding /ToUnicode 6 0 R >>",
        stream(TO_UNICODE),
    ]
    file, places = b"%PDF-1.7\n", []
    for number, body in enumerate(objects, start=1):
        places.append(len(file))
        file += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    end = b"trailer\n<< /Size 7 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % len(file)
    with open(path, "wb") as target:
        target.write(file + b"xref\n0 7\n0000000000 65535 f \n" + table + end)


for name in ("pypdfium2", "pypdf"):
    print(name, version(name))
write_page(sys.argv[1])
page = pypdfium2.PdfDocument(sys.argv[1])[0].get_textpage()
text = page.get_text_range()
print("text:", ascii(text))
assert text == pypdf.PdfReader(sys.argv[1]).pages[0].extract_text()
by_string, (by_search, _) = text.find("root"), page.search("root").get_next()
print(f"len {len(text)}, count_chars {page.count_chars()}; 'root' by str.find {by_string}, by search {by_search}")
assert page.count_chars() == len(text) + 2 and by_search == by_string + 2
left = [round(page.get_charbox(place)[0]) for place in (by_string, by_search)]
print(f"left edge of the box there: {left[0]} and {left[1]}")
assert left[0] + 5 < left[1]
one_by_one = "".join(page.get_text_range(place, 1) for place in range(page.count_chars()))
print("letters one by one:", ascii(one_by_one))
assert one_by_one == text.replace("\U0001d465", "").replace("\U0001d466", "")
print("Each letter of a formula counts twice in pypdfium2, and once in the string that it returns.")
PYTHON
