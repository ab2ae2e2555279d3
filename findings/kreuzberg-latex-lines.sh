#!/usr/bin/env bash
# Kreuzberg: in LaTeX the words behind \section{...} or \paragraph{...} on the same line are gone, and so are those before \begin{quote}.
#
# Expected: a line end is a blank in LaTeX, so where the author breaks lines changes nothing. pandoc gives one text for "\paragraph{Gates.}
# They open." on one line and on two.
# What happens: the file is read line by line. Of a line with a heading only the heading is kept, of a line with \begin{...} only what is
# inside, and of a heading over two lines the second one, with its brace. All else of these lines is dropped without a warning. \footnote
# is dropped with its words wherever it stands, and \cite and \ref put the keys of the source into the sentence: "as doe2019a showed".
# Who meets this: whoever indexes sources of arXiv: \paragraph is nearly always followed by its text, and so is a heading of a letter.
# Versions: kreuzberg 4.10.4, pandoc 3.9 by pypandoc-binary 1.17. Source: none found; seen by running this.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check kreuzberg==4.10.4 pypandoc-binary==1.17 2>/dev/null

"$folder/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import kreuzberg
import pypandoc

WORDS = {  # what Kreuzberg keeps of words that pandoc has
    "\\section{Locks}\nBoats wait.": "Locks Boats wait.",
    "\\section{Locks} Boats wait.": "Locks",
    "\\paragraph{Gates.} They open.\nThey shut.": "Gates. They shut.",
    "\\section{Locks and\ngates}\nBoats wait.": "gates} Boats wait.",
    "The act says \\begin{quote}Boats wait.\\end{quote} in all.": "Boats wait.",
    "Boats\\footnote{Not in spring.} wait.": "Boats wait.",
    "\\textbf{Boats} and \\texttt{gates} wait.": "Boats and gates wait.",
}


def body(latex: str) -> str:
    source = f"\\documentclass{{article}}\n\\begin{{document}}\n{latex}\n\\end{{document}}\n"
    return " ".join(kreuzberg.extract_bytes_sync(source.encode(), "application/x-latex").content.split())


print("kreuzberg", version("kreuzberg"), "pandoc", pypandoc.get_pandoc_version())
for latex, kept in WORDS.items():
    pandoc = " ".join(pypandoc.convert_text(latex, "plain", format="latex").split())
    print(f"{latex!r}: {body(latex)!r}, pandoc {pandoc!r}")
    assert body(latex) == kept
    plain = pandoc.replace("[1]", "")
    assert ("Boats" in plain and "wait." in plain) or "They open. They shut." in plain
    assert ("Not in spring." in plain) == ("footnote" in latex) and "}" not in plain
sentence = body("Boats wait, as \\citet{doe2019a} showed in \\ref{sec:boats}.")
print(sentence)
assert sentence.endswith("Boats wait, as doe2019a showed in sec:boats.")
PYTHON
