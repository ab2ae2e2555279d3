"""LaTeX: sections, macros, and commands that leave no residue in the text."""

import random
from time import process_time

import pytest
from pylatexenc.latexwalker import LatexWalker

from engine.readers import latex as latex_reader
from engine.readers.latex import plain, read
from engine.text.document import Document

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


def test_text_is_readable_without_comments_preamble_and_bibliography() -> None:
    text = read(PAPER.encode(), "a", "a.tex").text
    shown = ("We present LongMatch. It is 50% better.", "See: β^2 (A note.).", "x = 1 % kept")
    assert [words for words in shown if words not in text] == []
    assert not [word for word in ("hidden", "documentclass", "Xavier", "refs", "trailing", "sec:i") if word in text]


def test_fragments_and_unbalanced_braces_are_read() -> None:
    document = read(rf"\section{{One}} {BODY} \section{{Two}} {BODY}".encode(), "a", "a.tex")
    assert [section.heading for section in document.sections] == ["One", "Two"]
    assert "body" in read(rf"\section{{One {{ {BODY}".encode() + b"\n\\textbf{x body", "a", "a.tex").text


def test_tables_and_figures_keep_their_captions() -> None:
    table = r"\begin{table}\centering\begin{tabular}{lr} a & b \\ 1 & 2 \end{tabular}\caption{The table.}\end{table}"
    figure = r"\begin{figure}\includegraphics[width=3cm]{a.png}\caption{A figure.}\end{figure}"
    words = read(f"{table}\n\n{figure}".encode(), "a", "a.tex").text.split()
    assert words == ["a", "b", "1", "2", "The", "table.", "A", "figure."]


def text_of(latex: str) -> str:
    return read(latex.encode(), "a", "a.tex").text


@pytest.mark.parametrize(
    "definition",
    [
        r"\newcommand{\x}[2][{a}]{Old \textbf{#1 {#2}}}", r"\renewcommand*\x{\begin{center}}",
        r"\providecommand\x[1]{old}", r"\newenvironment{t}[1][a]{\begin{T}}{\end{T}}",
        r"\renewenvironment {t} {\begin{T}} {\end{T}}", r"\newtheorem{thm}{Old}[section]",
        r"\newtheorem*{thm}[lemma]{Old}", r"\def\x#1 and #2{old {#1}}", r"\long\gdef\x{old}", r"\let\x=\textbf",
        r"\let\x\undefined", r"\DeclareMathOperator*{\x}{old}", r"\NewDocumentCommand{\x}{O{old} m}{old #1}",
        r"\DeclarePairedDelimiter\x{(}{)}", r"\newif\ifold", r"\newcolumntype{O}[1]{old}",
    ],
)  # fmt: skip
def test_definitions_are_left_out_wherever_they_stand(definition: str) -> None:
    assert text_of(f"before\n{definition}\nafter {{{definition} words}}") == "before\nafter words"


def test_a_definition_in_program_text_is_text() -> None:
    code = "\\newcommand{\\x}{%d}\n    indented"
    assert text_of(f"before\n\\begin{{lstlisting}}[language=TeX]\n{code}\n\\end{{lstlisting}}") == f"before\n\n{code}"


def test_macros_that_grow_without_end_are_left_alone() -> None:
    assert len(text_of(rf"\def\x{{{'word ' * 1000}}} {'x ' * 9}" + r"\x " * 9_000)) < 100_000


@pytest.mark.parametrize(
    ("latex", "text"),
    [
        # macros without arguments
        (r"\newcommand{\sys}{LM\xspace}\newcommand{\long}{\sys-2} \sys, \long{}!", "LM, LM-2!"),
        (r"\newcommand{\a}{\alpha}$\a{}x$", "αx"),
        (r"\def\on{\futurelet\@next\@on}\def\eg{e.g.\on} \eg{} a", "e.g. a"),
        (r"\newcommand{\section}{no}\section{Yes} text", "Yes\n\ntext"),
        (r"\def\x{\x\x} text", "text"),
        # commands
        (r"\looseness=-1 In the", "In the"), (r"\parskip 0pt plus 1pt\parindent=0.5\baselineskip In", "In"),
        (r"\begin{CJK*}{UTF8}{gbsn}In\end{CJK*}", "In"),
        (r"\begin{minipage}[t]{0.9\textwidth}In\end{minipage}", "In"),
        (r"\resizebox{0.9\textwidth}{!}{In} \scalebox{.5}{it}", "In it"),
        (r"\textcolor[HTML]{FF0000}{In} \custom[a=b]{it}", "In it"),
        (r"\textcolor{red}{un}\textcolor{blue}{do} {\color{red}re}{\color{blue}start}", "undo restart"),
        (r"$\alpha=1$ and $\sqrt[3]{x}$", "α=1 and 3√(x)"),
        (r"Code: \url{https://a.b/c_d%20e#f}.", "Code: https://a.b/c_d%20e#f."),
        (r"\href{https://a.b/%7E}{our page}", "our page"),
        ("evolution~\\citep{a,b}, progressively\n\\cite[see][p. 3]{c}; so", "evolution, progressively; so"),
        (r"shown (\cite{a}; \citet{b}) and [\cite{c}]. In Section~\ref{s}, too", "shown and. In Section, too"),
        ("One.\n\n\\citet{a} show", "One.\n\nshow"), (r"\iffalse hidden \fi seen \verb|{%|", "seen {%"),
        (r"\begin{tabular}{l@{ }r} a & \multicolumn{2}{c}{b} \\ \cmidrule(lr){1-2} \end{tabular}", "a b"),
        (r"\multirow{2}*{In} Birch\tnote{a}", "In Birch^a"),
        (r"\halign{\hfil#\hfil&\quad{\it #}\cr Lock&Level\cr}", "Lock Level"),
        ("\\settabs 2\\columns\n\\+ Lock & Level\\cr", "Lock Level"),
        (r"\foo{In}\baz{it} of \textbf{A}\textit{b} {\glqq Zitat\grqq}", "In it of Ab „Zitat“"),
        (r"$90^\circ$ is $\binom{n}{k}$ on \today", "90° is (n over k) on"),
        (r"\usepackage{siunitx}\SI{3.5(2)e-3}{\m} is \num{.5}", "3.5(2) × 10^-3 m is .5"),
        (r"\newcommandx{\a}[2][1=oak,2=elm]{#1 and #2}\a, \a[fir]", "oak and elm, fir and elm"),
        (r"\begin{acronym}\acro{ssd}[SSD]{solid disk}\end{acronym}", "SSD solid disk"),
        (r"\ifthenelse{\boolean{x}}{In}{no}", "In"),
        ("\\begin{lstlisting}[\n language=C,\n caption={Of \\emph{it}}\n]\na[1]\n\\end{lstlisting}", "Of it\n\na[1]"),
        (r"\mintinline{python}|f()| and \mintinline{python}{g()}", "f() and g()"),
        (r"\begin{enumerate}\item A\begin{enumerate}\item B\end{enumerate}\item C\end{enumerate}", "1. A\n(a) B\n2. C"),
        (r"\begin{enumerate}[label=(\roman*),start=4]\item A\item[x] B\item C\end{enumerate}", "(iv) A\nx B\n(v) C"),
        (r"\begin{enumerate}[a)]\item A\begin{itemize}\item B\end{itemize}\end{enumerate}", "a) A\n* B"),
    ],
)  # fmt: skip
def test_macros_are_expanded_and_commands_leave_no_residue(latex: str, text: str) -> None:
    assert text_of(latex) == text


def test_each_author_is_listed_without_an_identifier() -> None:
    authors = r"\author[0000-0002-5077-881X]{John F. Wu}\affiliation{A}\author{Ann Lee\thanks{MIT} \And Bob\\ ETH}"
    document = read(rf"\begin{{document}}{authors} Words.\end{{document}}".encode(), "a", "a.tex")
    assert document.metadata["authors"] == ["John F. Wu", "Ann Lee", "Bob"]
    assert "5077" not in document.text


@pytest.mark.slow
@pytest.mark.parametrize(
    "part",
    [
        r"\newenvironment{t}{\begin{T}}{\end{T}}", r"{\begin{T}}{\end{T}}", "\\def\\x\n", r"\def ", r"\section{",
        r"\section[", r"\textbf{", r"\textbf", r"{\author", r"\begin{verbatim}", r"\newcommand{\x}[", r"\begin{T}$",
        r"\newcommand{\xx}{a} \xx ", r"\input{a}", r"\iffalse ", r"\cite[", r"\ifdefined\x ", r"\SI{1}{\x} ",
        r"\ac{a", r"\begin{a}", r"\author{a \\ ", r"\hbox to ", r"\only<1", "    ",
    ],
)  # fmt: skip
def test_time_is_linear_whatever_is_never_closed(part: str) -> None:
    seconds = []
    for size in (20_000, 200_000):
        started = process_time()
        assert text_of(f"Words {part * (size // len(part))}").startswith("Words")
        seconds.append(process_time() - started)
    assert seconds[1] < 1 + 25 * seconds[0]


@pytest.mark.parametrize(
    "latex", [r"\footnote", r"\sqrt[", r"\frac", r"\frac{a}", r"\href", r"\verb", r"\'", r"\textbf", r"\item["]
)
def test_commands_without_their_arguments_do_no_harm(latex: str) -> None:
    assert text_of(f"Words {latex}").startswith("Words")


def test_sections_start_at_their_headings_and_have_no_gaps() -> None:
    document = read(PAPER.replace(r"\maketitle", r"\def\x{\begin{T}}\input{none}").encode(), "a", "a.tex")
    for section in document.sections[1:]:
        assert document.text[section.start :].startswith(section.heading)
    assert [section.stop for section in document.sections[:-1]] == [section.start for section in document.sections[1:]]


def document_in(source: str) -> Document:
    return read(source.encode(), "a", "a.tex")


_DRAFT = r"\newif\ifdraft\drafttrue"
_GERMAN = r"\usepackage[ngerman]{babel}"


@pytest.mark.parametrize(
    ("front", "body", "text"),
    [
        (_DRAFT, r"\ifdraft draft\else final\fi, \ifpdf pages\else dvi\fi", "draft, pages"),
        (r"\def\eel{x}", r"\ifdefined\eel yes\else no\fi, \ifdefined\otter yes\else no\fi", "yes, no"),
        ("", r"\ifnum1=2 equal\else other\fi, \ifcase 0 none\or one\or two\fi", "other, none"),
        (r"\DeclareSIUnit\knot{kn}",
         r"\SI{3}{\square\metre}, \num{3.2e-4}, \unit[5]{km}, \unitfrac[3]{m}{s}, \qty{2}{\knot}",
         "3 m^2, 3.2 × 10^-4, 5 km, 3 m/s, 2 kn"),
        (r"\newglossaryentry{lk}{name=lock,plural=locks,description={a gate}}", r"\Glspl{lk}, \gls{lk}", "Locks, lock"),
        (r"\DeclareAcronym{gcd}{short=GCD,long=great divisor}", r"\ac{gcd}, \ac{gcd}", "great divisor (GCD), GCD"),
        (r"\acrodef{GCD}{great divisor}", r"\ac{GCD}, \acp{GCD}", "great divisor (GCD), GCDs"),
        (r"\newabbreviation{g}{GCD}{great divisor}", r"\glsxtrshort{g}, \glsentrylong{g}", "GCD, great divisor"),
        (r"\newenvironment{warn}[1][silt]{Beware of #1: }{ Take care.}", r"\begin{warn}It rose.\end{warn}",
         "Beware of silt: It rose. Take care."),
        (r"\NewDocumentEnvironment{warn}{m}{Beware of #1: }{}", r"\begin{warn}{eels}It rose.\end{warn}",
         "Beware of eels: It rose."),
        ("", r"\begin{lemma}One.\end{lemma}\begin{proof}Two.\end{proof}\par Three.\newline Four.",
         "One. Proof. Two. Three. Four."),
        ("", r"\begin{restatable}[Silt law]{theorem}{law}It flows.\end{restatable}", "Silt law It flows."),
        ("", r"\begin{exercise}[title={Old gates},points=3]Open.\end{exercise}", "Old gates Open."),
        ("", r"\hbox to 3cm{alpha\hfil} \adjustbox{max width=2cm}{beta} \hypertarget{a}{gamma} \hyperlink{a}{delta}",
         "alpha beta gamma delta"),
        ("", r"\begin{figure}\subfloat[Le]{\includegraphics{a}}\caption*{Star}\captionof{table}[S]{Third}\end{figure}",
         "Le Star Third"),
        ("", r"\begin{picture}(10,10)\put(1,2){Tenth}\end{picture}\begin{tblr}{colspec={lX}}eta\end{tblr}",
         "Tenth eta"),
        ("", r"\begin{frame}[fragile]\frametitle{Gates}\only<1>{Oak} \item<2-> elm\pause\end{frame}",
         "Gates Oak * elm"),
        ("", r"silt\-ation, \S 3, \copyright{} 2001, 4\degree", "siltation, §3, © 2001, 4°"),
        (_GERMAN, "Die gr\"o\"ste Schleuse, \"`Haus\"', Wa\"-ser", "Die größte Schleuse, „Haus“, Waser"),
        (_GERMAN, r"Universit\"at zu G\"{o}ttingen, T\"ur", "Universität zu Göttingen, Tür"),
        (r"\abstract{It rises.}", "Text.", "Abstract It rises. Text."),
        (r"\title{Locks}\subtitle{A survey}", "Text.", "Locks A survey Text."),
        (r"\newif\ifdraft\draftfalse", r"\ifdraft A\else B\fi \drafttrue\ifdraft C\else D\fi", "B C"),
        (r"\def\pair(#1,#2){#1 and #2}\def\upto#1 stop{up to #1}", r"\pair(oak,elm). \upto 12 stop.",
         "oak and elm. up to 12."),
        (r"\def\pair(#1,#2){#1 and #2}", r"Left \pair(oak and no end.", "Left (oak and no end."),
        ("", r"\twocolumn[\maketitle\begin{abstract}Old [or new] locks.\end{abstract}] They silt.",
         "Abstract Old [or new] locks. They silt."),
        ("", r"\begin{multicols}{2}[Over both.]Text.\end{multicols}", "Over both. Text."),
        (r"\newtheorem{thm}{Theorem}[section]\newtheorem{lem}[thm]{Hilfssatz}\newtheorem*{obs}{Old Law}",
         r"\begin{thm}[Vane]It falls.\end{thm}\begin{lem} Silt.\end{lem}\begin{obs}Doors.\end{obs}",
         "Theorem (Vane). It falls. Hilfssatz. Silt. Old Law. Doors."),
        ("\\declaretheorem[name=Rule, within=section]{r}\n\\declaretheorem{axiom}\n",
         r"\begin{r}It falls.\end{r}\begin{axiom}Silt.\end{axiom}", "Rule. It falls. Axiom. Silt."),
        (r"\NewDocumentCommand{\gate}{s m}{\IfBooleanTF{#1}{shut}{open} #2}"
         r"\DeclareExpandableDocumentCommand\lock{O{old} m o g}"
         r"{#1 #2\IfNoValueF{#3}{, #3}\IfValueT{#4}{\IfBlankF{#4}{; #4}}}",
         r"\gate{a}, \gate*{b}: \lock{c}. \lock[new]{d}[e]{f}. \lock{g}[i]{ }.",
         "open a, shut b: old c. new d, e; f. old g, i."),
        (r"\DeclarePairedDelimiter\abs{\lvert}{\rvert}\DeclarePairedDelimiterX\set[2]{\{}{\}}{#1 : #2}",
         r"$\abs{x}$, $\abs*[\Big]{y}z$, $\set{a}{b}$.", "|x|, |y|z, {a: b}."),
        ("", r"$M=\begin{pmatrix}1 & 2\\ 3 & \frac{a}{b}\end{pmatrix}$", "M=(1, 2; 3, a/b)"),
        ("", r"$\left\{\begin{array}{rcl} a &=& b\\[2pt] c &<& \begin{vmatrix}1&2\end{vmatrix}\end{array}\right.$",
         "{a = b; c < |1, 2|"),
        ("", r"\section{Gates\footnote{Of \emph{oak}.} and sills\protect\footnote[3]{Of elm.}}They fall.",
         "Gates and sills Of oak. Of elm. They fall."),
        (r"\title{Locks\tnoteref{t1}}",
         r"\tnotetext[t]{On funds.}\ead{a@b}\cortext{By post.}\address[a]{Weir Lab}\affiliation{Quay}\par It rose.",
         "Locks On funds. By post. Weir Lab Quay It rose."),
        ("", r"\icmltitle{Locks}\icmlauthor{Ann Vane}{a}\icmlaffiliation{a}{Weir Lab}\icmlkeywords{silt}\par It rose.",
         "Locks Weir Lab silt It rose."),
        ("", r"\affiliation[a]{organization={Weir Lab}, city={Goole}, country = {Old Mercia}}\par It rose.",
         "Weir Lab, Goole, Old Mercia It rose."),
        ("", r"\begin{proof}It falls.\end{proof}\begin{proof}[Proof of the law]It rose.\end{proof}",
         "Proof. It falls. Proof of the law. It rose."),
        (r"\newtheorem{lem}{Lemma}",
         r"\Cref{a} and \cref{b,c}: see \autoref{d}, \cref{none}.\begin{figure}\caption{Old.}\label{a}\end{figure}"
         r"\begin{align}\label{b}x\end{align}\begin{lem}\label{d}It falls.\end{lem}",
         "Figure and equations: see Lemma, ??. Old. x Lemma. It falls."),
        ("", r"\section{Old gates}\label{g}They fall; see \nameref{g}.", "Old gates They fall; see Old gates."),
        ("", r"\foreignquote{french}{Eau} rose, \og vite\fg{}.", "Eau rose, «vite»."),
        ("", r"\begin{tabular}{l}Oak\tabularnewline Elm\\\specialrule{1pt}{0pt}{2pt}Fir\end{tabular}", "Oak Elm Fir"),
        ("", r"The lock\todo[inline]{Note this.} is old, as\blfootnote{By Vane.} they say.",
         "The lock Note this. is old, as By Vane. they say."),
        ("", r"silt\textsuperscript{12,13} fell.\textsuperscript{4}", "silt^12,13 fell.^4"),
        ("", r"\begin{tabbing}Oak \= elm\\ \> fir\end{tabbing} \=a", "Oak elm fir ā"),
        ("", r"In $O(n\log n)$ and $\max x$.", "In O(n log n) and max x."),
        (r"\Abstract{It rises.}", "Text.", "Abstract It rises. Text."),
        (r"\newtheorem{proof}{Beweis}", r"\begin{proof}It falls.\end{proof}", "Beweis. It falls."),
        ("", r"\begin{enumerate}\setcounter{enumi}{3}\item" "\n" r"Oak\end{enumerate}\begin{enumerate}[resume]\item elm"
         r"\end{enumerate}\begin{enumerate}\item ash\end{enumerate}", "4. Oak 5. elm 1. ash"),
        (r"\def\01{\{0,1\}}\newcommand{\1}{one}", r"\overfullrule=0pt In $\01^n$, \1.", "In {0,1}^n, one."),
        ("", r"See \vref{fig:a}, \crefrange{f:a}{f:b}, \olref[syn]{def:b} and \elementref{index}; \cites[1]{a}[2]{b}"
         r" and \textcites{a}{b}.", "See and index; and."),
        ("", r"\qty{7}{\us}, \qty{5 +- 0.2}{\kohm}", "7 µs, 5 ± 0.2 kΩ"),
        (r"\newglossaryentry{l}{name=lock,description={a \emph{gate}}}\longnewglossaryentry{b}{name=bar}{Of\par silt.}",
         r"A \gls{b} is no \glsdesc{l}.\printglossary[title=X]\printglossaries",
         "A bar is no a gate. Glossary lock: a gate bar: Of silt."),
        ("", r"\ifcase 1 no\or one\or two\fi, \iffalse \ifx a b c\fi no\fi \ifdef{\x}{yes}{no}\ifblank{a}{b}{c}",
         "one, yesc"),
        (r"\usepackage[ngerman]{babel}", "Zu\"cker, Schi\"ffahrt, Belgi\"e", "Zucker, Schiffahrt, België"),
        (r"\documentclass[ngerman]{a}\usepackage{babel}", "Stra\"se", "Straße"),
        ("", r"XIX\ieme{} \CJKfamily{gbsn}\fontspec{Old Face}\usefont{T1}{a}{m}{n}IX", "XIXe IX"),
        (r"\newtcolorbox[auto counter]{ex}[2][]{title=Case: #2,#1}\newtcolorbox{nb}{title=Note}",
         r"\begin{ex}[label=a]{Silt}Sum.\end{ex}\begin{nb}Care.\end{nb}", "Case: Silt Sum. Note Care."),
        (r"\newtheorem{r}{Rule}", r"\begin{r}[name=Silt law,label=x]It falls.\end{r}", "Rule (Silt law). It falls."),
        (r"\lstnewenvironment{code}[1][]{\lstset{#1}}{}\newminted{py}{}",
         "\\begin{code}\nx_1 % y\n\\end{code}\\begin{pycode}\n{2} # 10%\n\\end{pycode}", "x_1 % y {2} # 10%"),
        ("", r"\lstinline[language=C]{a_b}, \Verb|c_d|, \mintinline[x]{c}{e%f}.", "a_b, c_d, e%f."),
        ("", r"\opening{Dear Rin,}It fell.\closing{Yours}Ann", "Dear Rin, It fell. Yours Ann"),
        ("", r"\blockquote[Vane][.]{It fell.} \textcquote[1]{k}{It rose.}", "It fell. “It rose.”"),
        ("", r"\begin{tabu} to \linewidth {X[l]X}a & b\end{tabu}\begin{NiceTabular}{cc}[hvlines]\toprule[1pt]c\\"
         r"\addlinespace[3pt]d\end{NiceTabular}", "a b c d"),
        ("", r"\IEEEPARstart{T}{his} lock\nomenclature{$Q$}{discharge}", "This lock Q discharge"),
        ("", r"$\mathsf{refl}_x$, $\mathit{len}$: \subfigure[Left \emph{gate}]{a}\subcaptionbox*{Right}[2cm]{b}",
         "refl_x, len: Left gate a Right b"),
        ("", r"Oak\columnbreak elm \cvitem{It rose.}{Now.}\cvitem{Silt}{Old}\chaptermark{G}\epigraph{Still}{Vane}Fir",
         "Oak elm It rose. Now. Silt Old Still Vane Fir"),
        # beside a damaged command
        ("", r"The \texttt{pump\_one and the gate.", "The pump_one and the gate."),
        ("", r"\foreignlg}Keep clear.\end{lock} \'etang", "Keep clear. étang"),
        ("", r"\begin{verbEvery lock is old.", "verbEvery lock is old."),
        ("", r"\begin{theorem}[Silt bound Every lock silts.\end{theorem} Yes.", "[Silt bound Every lock silts. Yes."),
        ("", r"\makebox[3cm Every lock silts. $\sqrt[3]{x}$", "[3cm Every lock silts. 3√(x)"),
        ("", "\\section{Gates\n\nOf oak.\n\n\\section{Silt}\n\nIt falls.} Yes.", "Gates Of oak. Silt It falls. Yes."),
        ("", r"\écluse{One} gate.", "One gate."),
    ],
)  # fmt: skip
def test_words_of_commands_and_beside_damaged_ones_are_read_and_apart(front: str, body: str, text: str) -> None:
    document = document_in(rf"{front}\begin{{document}}{body}\end{{document}}")
    assert " ".join(document.text.split()) == text
    assert "unexplained_words" not in document.left_out


@pytest.mark.parametrize(
    "front",
    [
        r"\author{Ann~Vane,~\IEEEmembership{Member,~IEEE,} and Rin~Okabe\thanks{M. Shell was here.}}",
        r"\author{Ann Vane$^{1}$\thanks{E-mail: a@b} and Rin Okabe$^{2,3}$\\$^{1}$Weir Lab\\$^{2}$Quay}",
        r"\author{\textbf{Ann Vane}\textsuperscript{1} \hspace{1cm} \textbf{Rin Okabe}\textsuperscript{2}\\ Weir Lab}",
        r"\author[a,1]{Ann Vane,\note{Corresponding author.}}\author[b]{and Rin Okabe}\affiliation[a]{Weir Lab}",
        r"\Author{Ann Vane $^{1,\dagger}$\orcidA{} and Rin Okabe $^{2,}$*}\AuthorNames{Ann Vane and Rin Okabe}",
        r"\name{Ann Vane$^1$, Rin Okabe$^2$}\address{$^1$Weir Lab}",
        r"\author{\alignauthor Ann Vane\\\affaddr{Weir Lab}\alignauthor Rin Okabe\\\email{a@b}}",
        r"\author{Ann Vane, \\ \textbf{Rin Okabe} \\ Weir Lab}",
        "\\author{Ann Vane$^\\mathbf{\\dagger}$ \\\\\n{\\bf Rin Okabe}$^\\ddag$\\\\\n"
        "$^\\dagger$\n Weir Lab, Goole \\\\ {\\tt a@b}}",
        r"\author{\name Ann Vane \email a@b.c \addr Weir Lab \AND \name Rin Okabe \addr Quay}",
    ],
)  # fmt: skip
def test_authors_are_told_from_their_notes_and_affiliations(front: str) -> None:
    document = document_in(rf"{front}\begin{{document}}Text.\end{{document}}")
    assert document.metadata["authors"] == ["Ann Vane", "Rin Okabe"]


def test_words_of_the_front_matter_are_counted_and_lost_words_too(monkeypatch: pytest.MonkeyPatch) -> None:
    front = r"\author{Ann Vane\\Weir Lab of Goole}\institute{Quay House}"
    source = rf"{front}\begin{{document}}Herons wade and otters dive here.\end{{document}}"
    assert document_in(source).left_out == {"front_matter_words": 5}
    monkeypatch.setattr(latex_reader, "plain", lambda part: part.replace("otters", ""))
    assert document_in(source).left_out["unexplained_words"] == 1


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (r"\magnification=\magstep1\font\big=cmbx10 scaled 1440 \centerline{\big Locks}" "\n\\beginsection 1. Gates\n\n"
         r"Of oak\footnote{$^1$}{Or elm.}.\bye", "Locks | 1. Gates Of oak (Or elm.)."),
        (r"\input amstex\magnification=1200\topmatter\title Locks\endtitle\author Ann Vane\endauthor\endtopmatter"
         r"\document\head Gates\endhead Of oak\footnote{Or elm.} now.\enddocument", 
         "Locks | Gates Of oak (Or elm.) now."),
    ],
)  # fmt: skip
def test_plain_tex_has_headings_and_no_residue(source: str, text: str) -> None:
    document = document_in(source)
    headings = [section.heading for section in document.sections if section.heading]
    before, _, heading = text.partition(" | ")
    assert " ".join(document.text.split()) == " ".join(f"{before} {heading}".split())
    assert not heading or heading.startswith(headings[-1])


@pytest.mark.parametrize("title", [r"\icmltitle{Old locks}", r"\Title{Old\\ locks}"])
def test_titles_of_other_classes(title: str) -> None:
    assert document_in(rf"{title}\begin{{document}}Text.\end{{document}}").title == "Old locks"


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (r"$a\ne b$", "a≠ b"), (r"$p\implies q\iff r$", "p⇒ q⇔ r"), (r"$\dfrac{a+b}{c}$", "(a+b)/c"),
        (r"$\tfrac12\binom{n}{k}$", "1/2(n over k)"), (r"${a \over b}$", "a / b"),
        (r"$\overset{a}{b}\xrightarrow[x]{f}$", "b^a→^f"), (r"$\det A = 3 \bmod n$", "det A = 3 mod n"),
        (r"$\arg\max_x\operatorname*{rank}$", "arg max_xrank"), (r"$\left.x\right|_0$", "x|_0"),
        (r"\def\H{{\cal H}}\renewcommand{\d}{\mathrm{d}}$\H$ and \d x, \'{e}", "H and d x, é"),
        (r"${n\choose k}$", "n choose k"), (r"CO$_2$ and H$_{2}$O", "CO2 and H2O"), (r"One\tcblower two", "One two"),
        (r"One\column{.5\textwidth}two", "One two"), (r"$\|x\| \gt \upmu\lbrack\varDelta$", "‖x‖>μ[Δ"),
    ],
)  # fmt: skip
def test_signs_and_scripts_of_formulas_are_text(source: str, text: str) -> None:
    document = read(rf"\begin{{document}}{source}\end{{document}}".encode(), "a", "a.tex")
    assert " ".join(document.text.split()) == text
    assert not document.left_out


def test_a_date_is_in_iso_form_and_notes_of_authors_are_counted() -> None:
    front = r"\author{Ann Vane\thanks{Lock Lab} \and Rin Okabe\footnote{Weir House}}\date{3 May 2021}"
    document = read(rf"{front}\begin{{document}}Text.\end{{document}}".encode(), "a", "a.tex")
    assert document.metadata == {
        "authors": ["Ann Vane", "Rin Okabe"], "date": "2021-05-03", "year": 2021, "left_out_front_matter_words": 4,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (r"\fbox{Oak}\begin{bar}elm\end{bar} ash \begin{bar}fir\end{bar}yew", "Oak\n\nelm\n\nash\n\nfir\n\nyew"),
        (r"\begin{align}a&=b\\\intertext{where}c&=d\end{align}", "a =b\nwhere c =d"),
        (r"\textquote[Vane]{Oak} \enquote*{elm}", "“Oak” “elm”"),
        (r"\keywords{silt}\maketitle Oak.", "silt\n\nOak."), (r"\caption{Oak}\Description{Elm}", "Oak\n\nElm"),
        (r"\begin{IEEEeqnarray}{rCl}a&=&b\end{IEEEeqnarray}", "a = b"),
    ],
)  # fmt: skip
def test_blocks_of_packages_stand_apart(source: str, text: str) -> None:
    assert read(rf"\begin{{document}}{source}\end{{document}}".encode(), "a", "a.tex").text == text


def test_words_read_at_once_are_those_of_the_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    pieces = [
        "flow of water",
        "a",
        " ",
        "\n\n",
        "\n",
        "---",
        "``so''",
        "\\emph{so so}",
        "\\frac12",
        "$x^2 [a, b)$",
        "~",
    ]
    pieces += ["\\sqrt[3]{x y}", "{", "}", "[", "]", "\\section*{On} it", "\\item[so] it", "\\\\*", "?`", "% no\n"]
    choose = random.Random(0).choice
    texts = ["".join(choose(pieces) for _ in range(12)) for _ in range(200)]
    shown = list(map(plain, texts))
    monkeypatch.setattr("engine.readers.latex._Walker", LatexWalker)
    assert shown == list(map(plain, texts))
