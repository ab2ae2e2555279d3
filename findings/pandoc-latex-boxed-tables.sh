#!/usr/bin/env bash
# pandoc: a LaTeX table in \resizebox is gone with its caption, "two\\lines" in \makecell is "lines" in a row of its own, \cmidrule{1-2} is "1-2".
#
# Expected: a command of layout that pandoc does not know loses the layout. \mbox, \hbox and \parbox keep their words, and so do minipage and
# threeparttable around a table. What cannot be converted is reported.
# What happens: an unknown command is left out with its arguments, and its argument may be the table: \resizebox{\columnwidth}{!}{...},
# \scalebox, \adjustbox, \makebox, \rotatebox. With the table goes the caption, so nothing is left of the float. In cells, \makecell, \thead and
# \shortstack are cut at their line break: the first line is lost and the second begins a row. \cmidrule and \cline write their columns into
# the next cell. \IEEEPARstart{T}{his} takes the first word of a paper. Only --verbose says that something was skipped.
# Who meets this: whoever indexes sources of arXiv by pandoc: wide tables of results are fitted to the column in just this way.
# Versions: pandoc 3.9 by pypandoc-binary 1.17. Source: issue 4499 of jgm/pandoc (closed; \mbox and its like), pull request 6898 (cells).
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pypandoc-binary==1.17 2>/dev/null

"$folder/venv/bin/python" - 2>/dev/null <<'PYTHON'
import pypandoc

ROWS = r"\begin{tabular}{ll}Recall & 0.5\\ Cost & 7\end{tabular}"
FLOAT = r"\begin{table}\caption{Results.}%s\end{table} After."
KEPT = ["%s", r"\begin{minipage}{5cm}%s\end{minipage}", r"\begin{threeparttable}%s\end{threeparttable}"]
LOST = [
    r"\resizebox{\columnwidth}{!}{%s}",
    r"\scalebox{0.8}{%s}",
    r"\adjustbox{max width=\textwidth}{%s}",
    r"\makebox[\textwidth][c]{%s}",
    r"\rotatebox{90}{%s}",
]


def words(latex: str) -> list[str]:
    text = pypandoc.convert_text(latex, "plain", format="latex", extra_args=["--wrap=none"])
    found = [word for word in text.split() if word.strip("-:+|=")]
    print(f"{latex}\n    {' '.join(found)}")
    return found


print("pandoc", pypandoc.get_pandoc_version())
for box in KEPT:
    assert words(FLOAT % (box % ROWS)) == ["Recall", "0.5", "Cost", "7", "Results.", "After."]
for box in LOST:
    assert words(FLOAT % (box % ROWS)) == ["After."]

CELLS = "\\begin{tabular}{ll}\n\\toprule\nName & Value \\\\\n%s & b \\\\\nc & d \\\\\n\\bottomrule\n\\end{tabular}"
assert words(CELLS % "a")[2:4] == ["a", "b"]
for command in (r"\makecell{two\\lines}", r"\thead{two\\lines}", r"\shortstack{two\\lines}"):
    assert words(CELLS % command)[2:] == ["lines", "b", "c", "d"]
for rule in (r"\cmidrule(lr){1-2}", r"\cline{1-2}"):
    assert words(CELLS % f"{rule} a")[2:] == ["1-2", "a", "b", "c", "d"]
assert words(r"\mbox{No} \hbox{word} \parbox{3cm}{lost.}") == ["No", "word", "lost."]
assert words(r"\IEEEPARstart{T}{his} paper ends here.") == ["paper", "ends", "here."]
PYTHON
