#!/usr/bin/env bash
# eyecite: a page range with an en dash, as courts print ranges, loses the whole pin cite, its first page too.
#
# Expected: "410 U. S. 113, 153–155" has at least the pin cite 153, since "153" and "153-155" with a hyphen are read.
# What happens: with an en dash pin_cite is None, in full, short and "Id." citations alike; the year and the court are still read, so
# the citation looks complete. With a no-break space between reporter and page, as publishers set it, no citation is found at all.
# clean_text(text, ["all_whitespace"]) mends the space, not the dash.
# Who meets this: whoever links passages of opinions to the cited page, on slip opinions and reports as they are published.
# Versions: eyecite 2.7.8. Source: the pin cite pattern in eyecite/regexes.py.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check eyecite==2.7.8 2>/dev/null

"$folder/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

from eyecite import clean_text, get_citations

KINDS = {
    "full": "Ames v. Birch, 410 U. S. 113, {} (1973).",
    "short": "In Ames, 410 U. S., at {}, the Court held.",
    "Id.": "Ames v. Birch, 410 U. S. 113 (1973). Id., at {}.",
}
print("eyecite", version("eyecite"))
for kind, sentence in KINDS.items():
    pins = {}
    for dash, pages in (("one page", "153"), ("hyphen", "153-155"), ("en dash", "153\u2013155")):
        found = get_citations(sentence.format(pages))[-1]
        pins[dash] = found.metadata.pin_cite
        print(f"{kind}, {dash}: {type(found).__name__}, pin cite {pins[dash]}, year {getattr(found.metadata, 'year', None)}")
    assert pins["one page"] and "153-155" in pins["hyphen"] and pins["en dash"] is None, kind

spaced = "Ames v. Birch, 410 U. S. 113, 153 (1973)."
no_break = spaced.replace("S. 113", "S.\u00a0113")
counts = [len(get_citations(text)) for text in (spaced, no_break, clean_text(no_break, ["all_whitespace"]))]
print("citations with a space, a no-break space, and after clean_text:", counts)
assert counts == [1, 0, 1]
cleaned = clean_text(KINDS["full"].format("153\u2013155"), ["all_whitespace"])
assert get_citations(cleaned)[0].metadata.pin_cite is None
print("An en dash drops the pin cite; a no-break space drops the citation.")
PYTHON
