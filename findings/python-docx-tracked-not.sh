#!/usr/bin/env bash
# python-docx: of "shall [inserted: not] sublet" a paragraph's text is "shall sublet", a version that no view of Word shows.
#
# Expected: text under review reads as if all changes were accepted or as if none were. Text in a form field is text.
# What happens: Paragraph.text leaves out deleted and inserted text alike, so it mixes both versions: a word that was replaced is
# missing altogether. An amount in a content control, a sign inserted as a symbol and the number in a field are missing as well.
# docx2txt and mammoth read the inserted words and the amount of the same file; docx2txt lacks the symbol and mammoth the field,
# so no two of the three agree. None warns.
# Who meets this: search and comparison of contracts and drafts of laws: the sense is turned around by the missing word.
# Versions: python-docx 1.2.0, docx2txt 0.9, mammoth 1.13.0. Source: issues 340 and 1123 of python-openxml/python-docx.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check python-docx==1.2.0 docx2txt==0.9 mammoth==1.13.0 2>/dev/null

"$folder/venv/bin/python" - <<'PYTHON'
import io
from importlib.metadata import version

import docx2txt
import mammoth
from docx import Document
from docx.oxml import parse_xml

SPACES = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
RUN = '<w:r><w:t xml:space="preserve">{}</w:t></w:r>'
CHANGE = 'w:id="1" w:author="A" w:date="2026-01-01T00:00:00Z"'
PARAGRAPHS = (
    f"{RUN.format('The tenant shall ')}<w:ins {CHANGE}>{RUN.format('not ')}</w:ins>{RUN.format('sublet.')}",
    f"{RUN.format('Rent: ')}<w:sdt><w:sdtContent>{RUN.format('500')}</w:sdtContent></w:sdt>{RUN.format(' pounds')}",
    f'{RUN.format("Area ")}<w:r><w:sym w:font="Symbol" w:char="F0B3"/></w:r>{RUN.format(" 5")}',
    f'{RUN.format("See section ")}<w:fldSimple w:instr="REF a">{RUN.format("12")}</w:fldSimple>',
)
document = Document()
for paragraph in PARAGRAPHS:
    document.element.body.insert_element_before(parse_xml(f"<w:p {SPACES}>{paragraph}</w:p>"), "w:sectPr")
stream = io.BytesIO()
document.save(stream)
texts = {
    "python-docx": [paragraph.text for paragraph in Document(stream).paragraphs],
    "docx2txt": docx2txt.process(stream).split("\n\n"),
    "mammoth": mammoth.extract_raw_text(stream).value.strip().split("\n\n"),
}
for name, text in texts.items():
    print(name, version(name), text)
    text[3] = text[3].strip()
assert texts["python-docx"] == ["The tenant shall sublet.", "Rent:  pounds", "Area  5", "See section"]
assert [texts[name][0] for name in ("docx2txt", "mammoth")] == ["The tenant shall not sublet."] * 2
assert [text[2] for text in texts.values()] == ["Area  5", "Area  5", "Area ≥ 5"]
assert [text[3] for text in texts.values()] == ["See section", "See section 12", "See section"]
PYTHON
