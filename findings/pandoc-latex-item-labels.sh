#!/usr/bin/env bash
# pandoc: clauses "(a)" and "(c)" of a LaTeX list are "1." and "2.", and a list that starts at (iii) or goes on after a break starts at 1.
#
# Expected: \item[(c)] prints (c), and pandoc keeps labels: those of a description list are terms, and enumerate[(a)] is (a), (b). Where it
# does not know a label it writes none, or the words of the label.
# What happens: in enumerate the label of an item is dropped and a number of pandoc's own takes its place; in itemize it is dropped. Of the
# options of enumitem none is read: label=(\alph*) is 1., 2., start=3 is 1., and resume, which goes on with the count of the list
# before, is 1. again. \setcounter is read before the first item and not between two. --verbose does not mention it. So "see (c)" in the
# text points to nothing, and a hit is cited by a number that the page does not have.
# Who meets this: whoever makes text of theorems, statutes, contracts or specifications in LaTeX, whose parts are cited by their labels.
# Versions: pandoc 3.9 by pypandoc-binary 1.17. Source: issue 7310 of jgm/pandoc (open) has label=; none found for \item[...].
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pypandoc-binary==1.17 2>/dev/null

"$folder/venv/bin/python" - <<'PYTHON'
import pypandoc


def lines(latex: str) -> list[str]:
    text = pypandoc.convert_text(latex, "plain", format="latex", extra_args=["--wrap=none"])
    found = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    print(f"{latex}\n    {found}")
    return found


def items(options: str, *labels: str, kind: str = "enumerate") -> str:
    bodies = "".join(rf"\item{label} {word}" for label, word in zip(labels, ("boats", "nets")))
    return rf"\begin{{{kind}}}{options}{bodies}\end{{{kind}}}"


print("pandoc", pypandoc.get_pandoc_version())
assert lines(items("", "[(a)]", "[(c)]", kind="description")) == ["(a)", "boats", "(c)", "nets"]
assert lines(items("[(a)]", "", "")) == ["(a) boats", "(b) nets"]
assert lines(items(r"\setcounter{enumi}{4}", "", "")) == ["5. boats", "6. nets"]

COUNTED = ["1. boats", "2. nets"]
assert lines(items("", "[(a)]", "[(c)]")) == COUNTED
assert lines(items("", "[5.]", "[9.]")) == COUNTED
assert lines(items(r"[label=(\alph*)]", "", "")) == COUNTED
assert lines(items(r"[label=(\roman*),start=3]", "", "")) == COUNTED
assert lines(items("", "", "") + " Text. " + items("[resume]", "", "")) == [*COUNTED, "Text.", *COUNTED]
assert lines(r"\begin{enumerate}\item boats\setcounter{enumi}{7}\item nets\end{enumerate}") == COUNTED
assert lines(items("", "[5.]", "[(b)]", kind="itemize")) == ["- boats", "- nets"]
PYTHON
