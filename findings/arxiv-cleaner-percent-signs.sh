#!/usr/bin/env bash
# arxiv-latex-cleaner: behind a % in \href, \verb, verbatim or lstlisting the rest of the line is gone: of "\verb|a % b| is 50" only "\verb|a %" stays.
#
# Expected: comments are removed, and a % that LaTeX prints stays: \%, and the sign in \url, \href, \verb and environments of code, where it
# is a letter like others. \url{...%20...} is kept whole.
# What happens: besides \% only \url is known. A link text behind an address with %20 is lost, and its brace, so that \href takes what follows
# for its text. A listing of "rate = 50 % 7" is "rate = 50 %", and printf("%d words"); is printf("%. A sentence behind \verb|%| ends there.
# The exit status is 0 and nothing is printed.
# Who meets this: whoever makes a corpus of sources of arXiv without comments: authors ran it before they submitted, or one runs it oneself.
# Readers behind it (pandoc, pylatexenc) lose more, since a brace is open.
# Versions: arxiv-latex-cleaner 1.0.11. Source: issues 51 and 116 of google-research/arxiv-latex-cleaner (open) and pull request 132 for
# environments, issue 82 for \url; none found for \href and \verb.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check arxiv-latex-cleaner==1.0.11 2>/dev/null

"$folder/venv/bin/pip" list 2>/dev/null | grep arxiv
mkdir "$folder/paper"
cat >"$folder/paper/paper.tex" <<'LATEX'
\documentclass{article}
\begin{document}
See \url{http://a.org/b%20c} for 50\% of it. % a comment
See \href{http://a.org/b%20c}{the report} of May.
The operator \verb|a % b| is the remainder.
\begin{verbatim}
rate = 50 % 7
\end{verbatim}
\begin{lstlisting}
printf("%d words");
\end{lstlisting}
\end{document}
LATEX
cat >"$folder/expected.tex" <<'LATEX'
\documentclass{article}
\begin{document}
See \url{http://a.org/b%20c} for 50\% of it. %
See \href{http://a.org/b%
The operator \verb|a %
\begin{verbatim}
rate = 50 %
\end{verbatim}
\begin{lstlisting}
printf("%
\end{lstlisting}
\end{document}
LATEX
"$folder/venv/bin/arxiv_latex_cleaner" "$folder/paper" >/dev/null 2>&1
cat "$folder/paper_arXiv/paper.tex"
diff "$folder/expected.tex" "$folder/paper_arXiv/paper.tex"
