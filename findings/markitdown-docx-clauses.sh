#!/usr/bin/env bash
# MarkItDown: clauses (e), (f) and, behind a sentence, (g) of a contract in Word are "1.", "2." and "1."; docx2python has the clause 9 as "5)".
#
# Expected: Word computes numbers from numbering.xml: format, first number, and a restart (startOverride). A converter to Markdown writes the
# numbers of the page, as pandoc does, or bullets.
# What happens: mammoth, which MarkItDown stands on, makes <ol> without a start, so each list begins at 1 and letters are numbers. A list that
# goes on behind a paragraph begins again. Two lists side by side, of which the second is set to begin at 9, become one. docx2python knows
# first numbers and formats, but not the restart, and writes ")" for whatever stands around the number. Nothing shows that a number is made up.
# Who meets this: whoever answers from contracts, bills and minutes: a hit says "clause 1" where the page has (g), and "see (f)" leads nowhere.
# Versions: markitdown 0.1.9, mammoth 1.13.0, docx2python 3.7.1, pandoc 3.9 by pypandoc-binary 1.17, python-docx 1.2.0.
# Source: issue 27 of mwilliamson/python-mammoth (open since 2017), pull request 448 of mwilliamson/mammoth.js; none found for docx2python.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    'markitdown[docx]==0.1.9' mammoth==1.13.0 docx2python==3.7.1 pypandoc-binary==1.17 python-docx==1.2.0 2>/dev/null

"$folder/venv/bin/python" - "$folder/contract.docx" 2>/dev/null <<'PYTHON'
import sys
from importlib.metadata import version

import pypandoc
from docx import Document
from docx2python import docx2python
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls
from markitdown import MarkItDown

WORD = nsdecls("w")
LIST, RESTARTED = 91, 92
CLAUSES = [("boats", LIST), ("nets", LIST), ("In addition:", None), ("rods", LIST), ("fees", RESTARTED), ("fines", RESTARTED)]


def write(path: str, number_format: str, text: str) -> None:
    """Clauses of a list that begins at 5 and goes on behind a sentence, then of one that is restarted at 9."""
    document = Document()
    numbering = document.part.numbering_part.element
    level = f'<w:lvl w:ilvl="0"><w:start w:val="5"/><w:numFmt w:val="{number_format}"/><w:lvlText w:val="{text}"/></w:lvl>'
    numbering.insert(0, parse_xml(f'<w:abstractNum {WORD} w:abstractNumId="90">{level}</w:abstractNum>'))
    restart = '<w:lvlOverride w:ilvl="0"><w:startOverride w:val="9"/></w:lvlOverride>'
    for number, override in ((LIST, ""), (RESTARTED, restart)):
        numbering.append(parse_xml(f'<w:num {WORD} w:numId="{number}"><w:abstractNumId w:val="90"/>{override}</w:num>'))
    for words, number in CLAUSES:
        paragraph = document.add_paragraph(words)
        if number:
            place = f'<w:numPr {WORD}><w:ilvl w:val="0"/><w:numId w:val="{number}"/></w:numPr>'
            paragraph._p.get_or_add_pPr().append(parse_xml(place))
    document.save(path)


def clauses(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


print(*(f"{name} {version(name)}" for name in ("markitdown", "mammoth", "docx2python")), "pandoc", pypandoc.get_pandoc_version())
path = sys.argv[1]
PAGES = {
    ("lowerLetter", "(%1)"): ["(e) boats", "(f) nets", "In addition:", "(g) rods", "(i) fees", "(j) fines"],
    ("decimal", "%1."): ["5. boats", "6. nets", "In addition:", "7. rods", "9. fees", "10. fines"],
}
for (number_format, text), page in PAGES.items():
    write(path, number_format, text)
    by_pandoc = clauses(pypandoc.convert_file(path, "plain", extra_args=["--wrap=none"]))
    by_markitdown = clauses(MarkItDown().convert(path).text_content)
    by_docx2python = clauses(docx2python(path).text)
    print(f"the page: {page}\n    MarkItDown: {by_markitdown}\n    docx2python: {by_docx2python}")
    assert by_pandoc == page
    assert by_markitdown == ["1. boats", "2. nets", "In addition:", "1. rods", "2. fees", "3. fines"]
    assert [clause.split(")")[0] for clause in by_docx2python[4:]] == (["e", "f"] if number_format == "lowerLetter" else ["5", "6"])
PYTHON
