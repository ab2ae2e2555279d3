#!/usr/bin/env bash
# pylatexenc: latex_to_text() keeps the words of a command that it does not know, and drops those of \texttt, \textsf and \mbox.
#
# Expected: what a converter knows it converts, and the risk lies in commands of packages and of authors. So \texttt{gate} is "gate" as
# \textbf{gate} is, and \S 5 is "§ 5".
# What happens: the parser has a table of commands and the converter another one. For a command in neither, the braces are read as a
# group behind it, and stay. For one that only the parser has, the braces are its arguments, and the converter, which has no rule
# for it, leaves it out with them: \texttt, \textsf, \textup, \textmd, \mbox, \keywords, \verb, verbatim. \S, \P and \pounds, signs
# without braces, are in neither table and go too. Nothing is logged, not even with tolerant_parsing=False.
# Who meets this: an indexer of papers (names of programs, genes and data sets are in \texttt) and of laws (§).
# Versions: pylatexenc 2.10 and 2.11. Source: pull request 53 of phfaist/pylatexenc, which made the parser know four of them.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"

cat >"$folder/commands.py" <<'PYTHON'
from importlib.metadata import version

from pylatexenc.latex2text import LatexNodes2Text

KEPT = [r"\textbf{%s}", r"\textsc{%s}", r"\emph{%s}", r"\mycommand{%s}", r"\gene{%s}", r"\fbox{%s}", r"\textsl{%s}"]
LOST = [r"\texttt{%s}", r"\textsf{%s}", r"\textup{%s}", r"\textmd{%s}", r"\mbox{%s}", r"\keywords{%s}", r"\verb|%s|"]
LOST += [r"\begin{verbatim}%s\end{verbatim}"]
SIGNS = {r"\S{} 5": "5", r"\P{} 5": "5", r"\pounds{} 5": "5", r"\textsection{} 5": "§ 5", r"\dag{} 5": "† 5"}


def text(latex: str) -> str:
    converted = " ".join(LatexNodes2Text().latex_to_text(f"The {latex} is open.", tolerant_parsing=False).split())
    print(f"{latex} -> {converted!r}")
    return converted


print("pylatexenc", version("pylatexenc"))
for command in KEPT:
    assert text(command % "gate") == "The gate is open."
for command in LOST:
    assert text(command % "gate") == "The is open."
for command, left in SIGNS.items():
    assert text(command) == f"The {left} is open."
PYTHON

for version in 2.10 2.11; do
    "$folder/venv/bin/pip" install --quiet --disable-pip-version-check "pylatexenc==$version" 2>/dev/null
    "$folder/venv/bin/python" "$folder/commands.py"
done
