#!/usr/bin/env bash
# odfdo: a paragraph "The gate of " with a span "oak" is "The gate ofoak" in get_formatted_text(), and right in Markdown.
#
# Expected: get_formatted_text() is the text of a document for readers. What odfdo writes into a file it reads back, and a blank
# beside a word in bold is a blank.
# What happens: a blank at either end of a piece of text is written as the element <text:s/>, as in ODF each blank is that would
# else be dropped, and get_formatted_text() leaves this element out. Words beside spans and at line starts are glued, "§ 5" too,
# where LibreOffice has the element. text_recursive and to_markdown() have the blanks.
# Who meets this: indexers of ODT files that programs made: contracts and letters from templates, whose values are spans.
# Versions: odfdo 3.27.3. Place: Document.get_formatted_text(); ODF 1.3, part 3, 6.1.2 (white space) and 6.1.3 (<text:s>).
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check odfdo==3.27.3 2>/dev/null

"$folder/venv/bin/python" - "$folder/gate.odt" <<'PYTHON'
import sys
from importlib.metadata import version

import odfdo

document = odfdo.Document("text")
document.body.clear()
paragraph = odfdo.Paragraph("The gate of ")
paragraph.append(odfdo.Span("oak"))
paragraph.append(" is old.")
document.body.append(paragraph)
document.body.append(odfdo.Element.from_tag("<text:p>§<text:s/>5 of the Act</text:p>"))
document.save(sys.argv[1])

opened = odfdo.Document(sys.argv[1])
texts = {
    "get_formatted_text()": " / ".join(opened.get_formatted_text().split("\n\n")).strip(" /"),
    "to_markdown()": " / ".join(opened.to_markdown().splitlines()[::2]),
    "text_recursive": " / ".join(one.text_recursive for one in opened.body.paragraphs),
}
print("odfdo", version("odfdo"))
for name, text in texts.items():
    print(f"{name}: {text}")
assert texts["get_formatted_text()"] == "The gate ofoakis old. / §5 of the Act"
assert texts["to_markdown()"].startswith("The gate of oak is old.")
assert texts["text_recursive"] == "The gate of oak is old. / § 5 of the Act"
PYTHON
