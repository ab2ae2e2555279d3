#!/usr/bin/env bash
# pybtex: an author whom DBLP writes "Mart{\'{\i}}nez" is printed as "Mart\'ınez"; the same name with "{\'\i}" is "Martínez".
#
# Expected: a name is decoded whatever braces its accents stand in, since \'{e}, {\'e}, {\'{e}} and \'e are all "é". TeX sets an accent on
# \i, the i without a dot, because the accent takes the place of the dot: it is "í".
# What happens: latexcodec, which pybtex uses, looks for the accent and \i side by side. If a brace stands between them, it finds \i first and
# makes it "ı", and the accent stays in the text as a backslash and a quote. No exception, no warning. All accents on \i and \j are
# the same. bibtexparser, which decodes with pylatexenc, has the names right.
# Who meets this: whoever joins or searches authors of bibliographies: García and Martínez are among the most frequent names of all, and
# DBLP and journals write them so. The two spellings of one author do not match, and a search for the name finds neither half.
# Versions: pybtex 0.26.1, latexcodec 3.0.1, bibtexparser 2.1.0. Source: issues 57 and 65 of mcmtroffaes/latexcodec (closed, not to be mended).
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pybtex==0.26.1 latexcodec==3.0.1 bibtexparser==2.1.0 2>/dev/null

"$folder/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import bibtexparser
from bibtexparser.middlewares import LatexDecodingMiddleware
from pybtex.database import parse_string
from pybtex.richtext import Text


def names(spelling: str) -> tuple[str, str, str]:
    """The last name and the title by pybtex, and the author by bibtexparser."""
    entry = f"@article{{key, author = {{{spelling}, Ana}}, title = {{On {spelling}}}}}"
    fields = parse_string(entry, "bibtex").entries["key"]
    last = "".join(str(part) for part in fields.persons["author"][0].rich_last_names)
    other = bibtexparser.parse_string(entry, append_middleware=[LatexDecodingMiddleware()])
    found = last, str(Text.from_latex(fields.fields["title"])), other.entries[0]["author"]
    print(f"{spelling}: {found}")
    return found


print(*(f"{name} {version(name)}" for name in ("pybtex", "latexcodec", "bibtexparser")), sep=", ")
for spelling in (r"Mart{\'\i}nez", r"Mart\'{i}nez", r"Mart{\'{i}}nez"):
    assert names(spelling) == ("Martínez", "On Martínez", "Martínez, Ana"), spelling
for spelling in (r"Mart{\'{\i}}nez", r"Mart\'{\i}nez"):
    assert names(spelling) == (r"Mart\'ınez", r"On Mart\'ınez", "Martínez, Ana"), spelling
assert names(r"Jos{\'{e}}")[0] == "José"
assert names(r"Na{\"{\i}}m")[0] == r"Na\"ım" and names(r"Be{\^{\i}}n")[0] == r"Be\^ın"
PYTHON
