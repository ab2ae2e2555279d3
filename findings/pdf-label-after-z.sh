#!/usr/bin/env bash
# PDF page labels: page 28 of an appendix labelled by letters is "BB" for pypdf and pdfium, and "AB" for PyMuPDF, pikepdf and pdfminer.six.
#
# Expected: a label is in the file (style A, a first number, a prefix), so all readers give the one that a viewer shows. After Z they
# count as the columns of a spreadsheet do: AA, AB, AC.
# What happens: ISO 32000 says "A to Z for the first 26 pages, AA to ZZ for the next 26", which is AA, BB, CC: the letter is repeated. Two of
# five readers do so. The others go on to AZ and BA; both ways have a "BB", for page 28 and for page 54. Up to Z and for Roman
# numbers all agree. An erratum of 2024 made it AZ and was taken back; PyMuPDF went from BB to AB in 2022, pypdf from AB to BB in 2026.
# Who meets this: whoever cites or opens a hit by page label, with an index made by one library and a viewer that uses another one.
# Versions: pypdf 7.1.1, pypdfium2 5.15.2, PyMuPDF 2.0, pikepdf 10.18.0, pdfminer.six 20260107.
# Source: issues 432 and 593 of pdf-association/pdf-issues, pull requests 1942 of pymupdf/PyMuPDF and 4065 of py-pdf/pypdf.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    pypdf==7.1.1 pypdfium2==5.15.2 pymupdf==2.0 pikepdf==10.18.0 pdfminer.six==20260107 2>/dev/null

"$folder/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version
from io import BytesIO

import pikepdf
import pymupdf
import pypdf
import pypdfium2
from pdfminer.pdfdocument import PDFDocument
from pdfminer.pdfpage import PDFPage
from pdfminer.pdfparser import PDFParser


def labels(style: str) -> dict[str, list[str]]:
    """The label of each page of a file of 60 pages, by library."""
    made, file = pikepdf.new(), BytesIO()
    for _ in range(60):
        made.add_blank_page()
    rule = pikepdf.Dictionary(S=pikepdf.Name("/" + style), P=pikepdf.String("App. "))
    made.Root.PageLabels = pikepdf.Dictionary(Nums=pikepdf.Array([0, rule]))
    made.save(file)
    pdfium = pypdfium2.PdfDocument(file.getvalue())
    with pikepdf.open(file) as by_qpdf:
        return {
            "pypdf": list(pypdf.PdfReader(file).page_labels),
            "pypdfium2": [pdfium.get_page_label(number) for number in range(60)],
            "pymupdf": [page.get_label() for page in pymupdf.open(stream=file.getvalue())],
            "pikepdf": [page.label for page in by_qpdf.pages],
            "pdfminer.six": [page.label for page in PDFPage.create_pages(PDFDocument(PDFParser(file)))],
        }


letters = labels("A")
for library, found in letters.items():
    print(f"{library} {version(library)}: pages 26, 27, 28, 52, 53, 54 are", [found[page - 1] for page in (26, 27, 28, 52, 53, 54)])
repeated, counted = letters["pypdf"], letters["pymupdf"]
assert repeated[25:29] == ["App. Z", "App. AA", "App. BB", "App. CC"] and repeated[51:53] == ["App. ZZ", "App. AAA"]
assert counted[25:29] == ["App. Z", "App. AA", "App. AB", "App. AC"] and counted[51:54] == ["App. AZ", "App. BA", "App. BB"]
assert letters["pypdfium2"] == repeated and letters["pikepdf"] == letters["pdfminer.six"] == counted
assert len({tuple(found) for found in labels("r").values()}) == 1
PYTHON
