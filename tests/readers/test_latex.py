from __future__ import annotations

from engine.readers.latex import read

BODY = "A sentence of the body that is long enough. " * 6
PAPER = rf"""\documentclass{{article}}
\newcommand{{\sys}}{{LongMatch\xspace}}
\title{{A \emph{{great}} paper}} % not the final one
\author{{Ann Lee\thanks{{MIT}} \and Bob Ray\\ ETH}}
\begin{{document}}
\maketitle
\begin{{abstract}}
We present \sys. It is 50\% better.  % hidden
{BODY}
\end{{abstract}}
\section{{Introduction}}\label{{sec:i}}
See \citet{{x}}: $\beta^2$\footnote{{A note.}}. {BODY}
\subsection*{{Sub \textbf{{bold}}}}
{BODY}
\begin{{verbatim}}
x = 1 % kept
\end{{verbatim}}
\bibliography{{refs}}
\begin{{thebibliography}}{{9}}\bibitem{{x}} Xavier.\end{{thebibliography}}
\end{{document}} trailing"""


def test_a_paper_has_its_sections() -> None:
    document = read(PAPER.encode(), "a", "a.tex")
    assert [section.path for section in document.sections] == [
        ("Abstract",), ("Introduction",), ("Introduction", "Sub bold"),
    ]  # fmt: skip
    assert document.title == "A great paper"
    assert document.metadata["authors"] == ["Ann Lee", "Bob Ray"]


def test_text_is_readable() -> None:
    text = read(PAPER.encode(), "a", "a.tex").text
    assert "We present LongMatch. It is 50% better." in text
    assert "See: β^2 (A note.)." in text
    assert "x = 1 % kept" in text


def test_comments_preamble_and_bibliography_are_left_out() -> None:
    text = read(PAPER.encode(), "a", "a.tex").text
    assert not [word for word in ("hidden", "documentclass", "Xavier", "refs", "trailing", "sec:i") if word in text]


def test_a_fragment_without_a_document_is_read() -> None:
    document = read(rf"\section{{One}} {BODY} \section{{Two}} {BODY}".encode(), "a", "a.tex")
    assert [section.heading for section in document.sections] == ["One", "Two"]


def test_unbalanced_braces_do_no_harm() -> None:
    assert "body" in read(rf"\section{{One {{ {BODY}".encode() + b"\n\\textbf{x body", "a", "a.tex").text


def test_tables_and_figures_keep_their_captions() -> None:
    table = r"\begin{table}\centering\begin{tabular}{lr} a & b \\ 1 & 2 \end{tabular}\caption{The table.}\end{table}"
    figure = r"\begin{figure}\includegraphics[width=3cm]{a.png}\caption{A figure.}\end{figure}"
    words = read(f"{table}\n\n{figure}".encode(), "a", "a.tex").text.split()
    assert words == ["a", "b", "1", "2", "The", "table.", "A", "figure."]


def test_a_macro_without_its_argument_does_no_harm() -> None:
    assert read(rb"Words \footnote", "a", "a.tex").text == "Words"
