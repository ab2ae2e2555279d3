#!/usr/bin/env bash
# pdf_oxide: "1983" in two pieces is "1 983" where the second begins 0.02 points early, and one word where it begins 0.5 late.
#
# Expected: a blank that is not in the strings of a page is a gap between letters, wider than some share of the size. Pieces that
# touch, or overlap by the rounding of coordinates, are one word, as for pypdf and pdfium.
# What happens: a piece that begins up to 0.2 points before the end of the one before it gets a blank in a line of 12 points, and
# a gap of half a point gives none between letters or digits. "704" and "(d)", "36" and "-h" are parted by any rounding.
# Who meets this: readers of opinions. Word processors draw a line in pieces at rounded places, most of all where numbers of
# sections and dockets have signs: a search for "704(d)" or "36-hour" finds nothing, and halves of words are indexed.
# Versions: pdf_oxide 0.3.78, pypdf 7.1.1, pypdfium2 5.15.2. Place: PdfDocument.extract_text().
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pdf_oxide==0.3.78 pypdf==7.1.1 pypdfium2==5.15.2 2>/dev/null

"$folder/venv/bin/python" - "$folder/page.pdf" <<'PYTHON'
import sys
from importlib.metadata import version

import pdf_oxide
import pypdf
import pypdfium2

# Of letters of Times at one point.
WIDTHS = dict.fromkeys("dghku0123456789n", 0.5) | dict.fromkeys("()r-", 0.333) | dict.fromkeys("lit", 0.278) | {"e": 0.444, "a": 0.444}
OBJECTS = (
    "<</Type/Catalog/Pages 2 0 R>>",
    "<</Type/Pages/Kids[3 0 R]/Count 1>>",
    "<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 5 0 R/Resources<</Font<</F 4 0 R>>>>>>",
    "<</Type/Font/Subtype/Type1/BaseFont/Times-Roman>>",
)


def write(first: str, second: str, gap: float) -> None:
    """A page with a word in two pieces, of which the second begins `gap` points behind the end of the first."""
    pieces = ((first, 72), (second, 72 + 12 * sum(map(WIDTHS.__getitem__, first)) + gap))
    shown = [text.replace("(", r"\(").replace(")", r"\)") for text, _ in pieces]
    content = " ".join(f"BT /F 12 Tf {x:.3f} 700 Td ({text}) Tj ET" for text, (_, x) in zip(shown, pieces))
    file, places = "%PDF-1.4\n", []
    for number, body in enumerate((*OBJECTS, f"<</Length {len(content)}>>\nstream\n{content}\nendstream"), 1):
        places.append(len(file))
        file += f"{number} 0 obj\n{body}\nendobj\n"
    rows = "".join(f"{place:010} 00000 n \n" for place in places)
    table = f"xref\n0 6\n0000000000 65535 f \n{rows}trailer\n<</Size 6/Root 1 0 R>>\nstartxref\n{len(file)}\n%%EOF\n"
    open(sys.argv[1], "wb").write((file + table).encode("latin-1"))


def texts(first: str, second: str, gap: float) -> list[str]:
    write(first, second, gap)
    page = pypdfium2.PdfDocument(sys.argv[1])[0]
    found = (
        pdf_oxide.PdfDocument(sys.argv[1]).extract_text(0),
        pypdf.PdfReader(sys.argv[1]).pages[0].extract_text(),
        page.get_textpage().get_text_bounded(),
    )
    return [text.strip() for text in found]


print(*(f"{name} {version(name)}" for name in ("pdf_oxide", "pypdf", "pypdfium2")), sep=", ")
for first, second in (("regu", "lating"), ("1", "983"), ("704", "(d)"), ("36", "-h"), ("(a)", "(1)")):
    for gap in (-0.1, -0.02, 0.02, 0.5):
        own, *others = texts(first, second, gap)
        print(f"{first} and {second}, {gap:+} points: {own!r}, the others {others[0]!r}")
        assert others == [first + second] * 2
        is_parted = gap < 0 or not second.isalnum()
        assert own == (f"{first} {second}" if is_parted else first + second)
PYTHON
