#!/usr/bin/env bash
# mammoth: extract_raw_text() of an address on three lines is "The Clerk1 Mill LaneNorwich": line breaks are dropped and words are glued.
#
# Expected: raw text has no formatting, so a line break is "\n" as in python-docx and docx2txt, or a space. A tab is "\t" in it.
# What happens: text and tabs are kept, paragraphs get two line ends, and all breaks in a paragraph (Shift+Enter in Word, page, column) give
# nothing, so the last word of a line and the first of the next one become one word. HTML of the same file has <br />. A carriage return
# (<w:cr/>), which is a line break for the others, is in neither.
# Who meets this: whoever makes the text of letters, contracts and statutes for search by mammoth: lists, verses, addresses and signatures
# are typed with Shift+Enter. Neither word is found, and sentences become longer.
# Versions: mammoth 1.13.0, python-docx 1.2.0, docx2txt 0.9. Source: mammoth/raw_text.py; pull request 87 of mwilliamson/python-mammoth (open).
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check mammoth==1.13.0 python-docx==1.2.0 docx2txt==0.9 2>/dev/null

"$folder/venv/bin/python" - "$folder" <<'PYTHON'
import sys
from importlib.metadata import version
from pathlib import Path

import docx
import docx2txt
import mammoth
from docx.enum.text import WD_BREAK
from docx.oxml import OxmlElement

LINES = ("The Clerk", "1 Mill Lane", "Norwich")


def texts(kind: str) -> dict[str, str]:
    """One paragraph whose three lines are divided by a break of this kind, read by four methods."""
    document = docx.Document()
    run = document.add_paragraph().add_run(LINES[0])
    for line in LINES[1:]:
        if kind == "tab":
            run.add_tab()
        elif kind == "carriage return":
            run._r.append(OxmlElement("w:cr"))
        else:
            run.add_break(WD_BREAK.PAGE if kind == "page" else WD_BREAK.LINE)
        run.add_text(line)
    file = Path(sys.argv[1], "letter.docx")
    document.save(file)
    with file.open("rb") as stream:
        found = {"raw": mammoth.extract_raw_text(stream).value.strip()}
        found["html"] = mammoth.convert_to_html(stream).value
    found |= {"python-docx": docx.Document(file).paragraphs[0].text, "docx2txt": docx2txt.process(file).strip()}
    print(f"{kind}: {found}")
    return found


print(*(f"{name} {version(name)}" for name in ("mammoth", "python-docx", "docx2txt")), sep=", ")
assert texts("tab")["raw"] == "\t".join(LINES)
line = texts("line")
assert line["raw"] == "".join(LINES) and line["html"] == f"<p>{'<br />'.join(LINES)}</p>"
assert line["python-docx"] == line["docx2txt"] == "\n".join(LINES)
assert texts("page")["raw"] == "".join(LINES)
carriage = texts("carriage return")
assert carriage["raw"] == "".join(LINES) and carriage["html"] == f"<p>{''.join(LINES)}</p>"
assert carriage["python-docx"] == carriage["docx2txt"] == "\n".join(LINES)
PYTHON
