#!/usr/bin/env bash
# striprtf: of an opinion in RTF the footnotes and text boxes are gone, and words that were deleted or hidden stand in the sentence.
#
# Expected: the text is that of the page. A footnote and a box are on it, a tracked deletion is not part of the final version, and hidden text is
# not seen; or all words of the file are kept. pandoc keeps notes and boxes, leaves hidden text out and marks deletions.
# What happens: it is the other way around. Notes, boxes and results of objects are skipped as groups that hold no text, so "{\footnote ...}"
# leaves nothing; deletions and hidden text are marked by properties of letters (\deleted, \v), which are not read, so the lease that
# "shall not be sublet" is what is indexed where "not" was struck out. \upr loses both of its two texts. Nothing is logged.
# Who meets this: whoever indexes opinions, contracts and minutes in RTF, which courts and parliaments publish and word processors save:
# authorities are cited in footnotes, and drafts carry changes.
# Versions: striprtf 0.0.35, pandoc 3.9 by pypandoc-binary 1.17. Source: the set of destinations in striprtf/striprtf.py; no issue found.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check striprtf==0.0.35 pypandoc-binary==1.17 2>/dev/null

"$folder/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import pypandoc
from striprtf.striprtf import rtf_to_text

TEXTS = {  # source: text of striprtf, text of pandoc
    r"The gate{\footnote Act of 1911.} is open.\par": ("The gate is open.", "The gate[1] is open. [1] Act of 1911."),
    r"{\shp{\*\shpinst{\shptxt Lock 5.\par}}}The gate is open.\par": ("The gate is open.", "Lock 5. The gate is open."),
    r"{\object{\*\objdata 00}{\result Fees.}} The gate is open.\par": ("The gate is open.", "Fees. The gate is open."),
    r"{\upr{Lock}{\*\ud{Lock}}} 5 is open.\par": ("5 is open.", "Lock 5 is open."),
    r"It shall {\deleted not }be sublet.\par": ("It shall not be sublet.", "It shall ~~not~~ be sublet."),
    r"It shall {\v perhaps }be sublet.\par": ("It shall perhaps be sublet.", "It shall be sublet."),
    r"{\field{\*\fldinst HYPERLINK}{\fldrslt Lock}} 5, {\b gate} 7\_8.\par": ("Lock 5, gate 7\u20118.", "Lock 5, gate 7\u20118."),
}
print("striprtf", version("striprtf"), "pandoc", pypandoc.get_pandoc_version())
for source, (stripped, converted) in TEXTS.items():
    rtf = r"{\rtf1\ansi\ansicpg1252\deff0{\fonttbl{\f0 Times;}}" + source + "}"
    text = " ".join(rtf_to_text(rtf).split())
    pandoc = " ".join(pypandoc.convert_text(rtf, "plain", format="rtf").split())
    print(f"{source}\n    striprtf {text!r}\n    pandoc {pandoc!r}")
    assert (text, pandoc) == (stripped, converted)
PYTHON
