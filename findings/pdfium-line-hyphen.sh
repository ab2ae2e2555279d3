#!/usr/bin/env bash
# pdfium, by pypdfium2: a hyphen at the end of a line becomes U+FFFE in one method and U+0002 in the other, "Smith-Jones" too.
#
# Expected: the hyphen is a letter of the page and stays in the text before the line break, as pypdf and pdfminer.six leave it; or
# the words are joined as an option. get_text_range() and get_text_bounded() of a whole page give the same text.
# What happens: behind a letter, hyphen and line break are replaced by one character that is no text: a noncharacter of Unicode,
# or a control character. Names, "COVID-19" and "non-Executive" are treated like a divided word, so that removing the character
# joins what is written apart. Behind a digit ("1914-1918") both hyphen and line break stay.
# Who meets this: an indexer of PDFs: terms with the character in them match no query; SQLite and JSON store it silently.
# Versions: pypdfium2 5.15.2, reportlab 5.1.0. Source: FPDFText_IsHyphen of fpdf_text.h asks for it letter by letter.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pypdfium2==5.15.2 pypdf==7.1.1 reportlab==5.1.0 2>/dev/null

"$folder/venv/bin/python" - <<'PYTHON'
import io
from importlib.metadata import version

from pypdf import PdfReader
from pypdfium2 import PdfDocument
from reportlab.pdfgen.canvas import Canvas


def read(first: str, second: str) -> tuple[str, str]:
    """The texts that both methods give of a page of two lines."""
    stream = io.BytesIO()
    canvas = Canvas(stream, pagesize=(300, 200))
    for height, line in ((150, first), (136, second)):
        canvas.drawString(20, height, line)
    canvas.save()
    page = PdfDocument(stream.getvalue())[0].get_textpage()
    texts = page.get_text_range(), page.get_text_bounded()
    print("get_text_range {!r}, get_text_bounded {!r}".format(*texts))
    assert PdfReader(stream).pages[0].extract_text().split("\n")[:2] == [first, second]
    return texts


print("pypdfium2", version("pypdfium2"))
for first, second in (("the inter-", "national court"), ("Smith-", "Jones"), ("about COVID-", "19"), ("a non-", "Executive")):
    joined = first[:-1] + "{}" + second
    assert read(first, second) == (joined.format("\ufffe"), joined.format("\x02"))
assert read("from 1914-", "1918 on") == ("from 1914-\r\n1918 on",) * 2
PYTHON
