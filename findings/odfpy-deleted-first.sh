#!/usr/bin/env bash
# odfpy: the text of an ODT begins with the sentences that were deleted, each footnote stands in it twice, and cells "Lake", "5" are "Lake5".
#
# Expected: getElementsByType(P) gives the paragraphs of the text, and teletype.extractText() the text of one, or of the whole, with the spaces,
# tabs and line breaks that ODF has as elements. A deletion under review is not in the text, as pandoc has it; a note is there once.
# What happens: OpenDocument keeps deletions in front of the text (<text:tracked-changes>), as paragraphs. They come first, as if they were
# its opening, and the whole begins with the author and the date of the change. The paragraph of a note is inside the one with its mark: the words of the note stand in the
# sentence, after the number, glued to the word before, and come again as a paragraph. So do comments and text boxes. The text of the whole
# has no line end between cells and between items of a list. odfdo, the other library, has the same paragraphs in body.paragraphs.
# Who meets this: whoever counts words of drafts and laws in ODF, which governments of the EU use: a struck-out sentence is a hit, and
# frequencies of words in notes are doubled.
# Versions: odfpy 1.4.1, odfdo 3.27.3, pandoc 3.9 by pypandoc-binary 1.17. Source: none found; text:tracked-changes in ODF 1.3, part 3, 5.5.1.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check odfpy==1.4.1 odfdo==3.27.3 pypandoc-binary==1.17 2>/dev/null

"$folder/venv/bin/python" - "$folder/act.odt" <<'PYTHON'
import re
import sys
import zipfile
from importlib.metadata import version

import odfdo
import pypandoc
from odf import teletype
from odf.opendocument import OpenDocumentText, load
from odf.text import P

BODY = """<office:text xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" xmlns:dc="http://purl.org/dc/elements/1.1/">
<text:tracked-changes><text:changed-region text:id="c1"><text:deletion><office:change-info><dc:creator>A</dc:creator>
<dc:date>2026-01-05T10:00:00</dc:date></office:change-info><text:p>Boats are free of charge.</text:p></text:deletion>
</text:changed-region></text:tracked-changes>
<text:p>No person may fish<text:note text:id="n1" text:note-class="footnote"><text:note-citation>1</text:note-citation><text:note-body>
<text:p>Except in May.</text:p></text:note-body></text:note> here.<text:change text:change-id="c1"/></text:p>
<text:list><text:list-item><text:p>nets</text:p></text:list-item><text:list-item><text:p>rods</text:p></text:list-item></text:list>
<table:table><table:table-column table:number-columns-repeated="2"/><table:table-row><table:table-cell><text:p>Lake</text:p>
</table:table-cell><table:table-cell><text:p>5</text:p></table:table-cell></table:table-row></table:table>
</office:text>""".replace(">\n<", "><")
path = sys.argv[1]
OpenDocumentText().save(path)
with zipfile.ZipFile(path) as empty:
    parts = {name: empty.read(name) for name in empty.namelist()}
content = re.sub("<office:text ?/>|<office:text>.*</office:text>", lambda _: BODY, parts["content.xml"].decode())
with zipfile.ZipFile(path, "w") as filled:
    for name, part in (parts | {"content.xml": content.encode()}).items():
        filled.writestr(name, part)

print(*(f"{name} {version(name)}" for name in ("odfpy", "odfdo")), "pandoc", pypandoc.get_pandoc_version())
document = load(path)
paragraphs = [teletype.extractText(paragraph) for paragraph in document.getElementsByType(P)]
whole = teletype.extractText(document.text)
other = [paragraph.text_recursive for paragraph in odfdo.Document(path).body.paragraphs]
plain = pypandoc.convert_file(path, "plain", extra_args=["--wrap=none"])
for name, value in (("odfpy, paragraphs", paragraphs), ("odfpy, whole", whole), ("odfdo, paragraphs", other), ("pandoc", plain)):
    print(f"{name}: {value!r}")
SENTENCE = "No person may fish1Except in May. here."
assert paragraphs == ["Boats are free of charge.", SENTENCE, "Except in May.", "nets", "rods", "Lake", "5"]
assert whole == "A2026-01-05T10:00:00Boats are free of charge." + SENTENCE + "netsrodsLake5"
assert other[0] == "Boats are free of charge." and other.count("Except in May.") == 1 and "Except in May." in other[1]
assert "Boats" not in plain and plain.count("Except in May.") == 1 and "netsrods" not in plain
PYTHON
