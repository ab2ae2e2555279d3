#!/usr/bin/env bash
# pysbd: with clean=False a sentence that has the sign of the Sun, a flat or a closed integral is not in the list of sentences.
#
# Expected: clean=False promises sentences of the original text, and their join is the text. A sign that the rules do not know is a
# letter like others, as the star in "5 ★ hotel" is; at worst a sentence ends in a wrong place.
# What happens: pysbd puts signs that it takes for unused in the place of some punctuation, and turns them back at the end: "☉" into "?!",
# "♭" into ":", "∮" and "∯" into ".". If the text has them itself, its sentence is then not found in the text, and is left out without
# a trace, up to a mark that ends one; with char_span=True its span is missing. "12 M☉" (solar masses), "B♭ major" and "∮ E·dA" are
# such; "M⊙", the other sign of the Sun, is not.
# Who meets this: whoever cuts articles on astronomy, music or physics into sentences for retrieval: those sentences have no vector.
# Versions: pysbd 0.3.4. Source: pysbd/lang/common/standard.py; pull request 66 of allenai/scholarphi warns of twelve such signs, of which one is here.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pysbd==0.3.4 2>/dev/null

"$folder/venv/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import pysbd

LOST = {
    "☉": "The primary has a mass of 12 M☉ and is hot.",
    "♭": "The concerto in B♭ major was his last.",
    "∮": "By the law of Gauss ∮ E·dA is the charge inside.",
    "∯": "Over a closed surface ∯ D·dS is the charge inside.",
}
KEPT = {
    "⊙": "The primary has a mass of 12 M⊙ and is hot.",
    "♯": "The sonata in C♯ minor was his last.",
    "∫": "By the law of Gauss ∫ E·dA is the charge inside.",
    "★": "It is a 5 ★ hotel in the hills.",
}


def sentences(middle: str) -> list[str]:
    text = f"It begins here. {middle} It ends here."
    plain = pysbd.Segmenter(language="en", clean=False).segment(text)
    spans = pysbd.Segmenter(language="en", clean=False, char_span=True).segment(text)
    assert [span.sent for span in spans] == plain
    print(f"{middle!r}: {len(''.join(plain))} of {len(text)} letters in", plain)
    return plain


print("pysbd", version("pysbd"))
for sign, middle in KEPT.items():
    assert sentences(middle) == ["It begins here. ", f"{middle} ", "It ends here."]
for sign, middle in LOST.items():
    found = "".join(sentences(middle))
    assert sign not in found and middle[:10] not in found
    assert found.startswith("It begins here. ") and found.endswith("It ends here.")
PYTHON
