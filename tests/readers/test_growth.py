"""Every reader takes time linear in its source, whatever harmless construct is repeated."""

import json
from collections.abc import Callable
from pathlib import Path
from time import process_time

import pytest

from engine.readers import FORMATS, Unreadable, patents
from engine.readers.fields import case_fields, split_names
from engine.readers.markdown import front_matter
from engine.readers.markup import parse_safely
from engine.readers.reader import detected_suffix
from engine.readers.text import running_text
from engine.references.extraction import references
from engine.text.cleaning import without_encoded, without_readings
from engine.text.document import Document
from engine.text.headings import is_contents_line
from engine.text.section_kinds import heading_name, section_kinds
from engine.text.segmentation import sentence_starts
from engine.text.units import Unit, divide_by

SIZES = (3_000, 48_000)  # characters
FRAMES = {
    ".txt": "water %s",
    ".md": "# Pumps\n\nwater %s\n",
    ".rst": "Pumps\n=====\n\nwater %s\n",
    ".html": "<html><body><h1>Pumps</h1><p>water %s</p></body></html>",
    ".xml": "<article><body><sec><title>Pumps</title><p>water</p>%s</sec></body></article>",
    ".dita": "<bill><p>water flows on</p>%s</bill>",
    ".tex": "\\documentclass{article}\n\\begin{document}\n\\section{Pumps}\nwater %s\n\\end{document}",
    ".fodt": "<o:document xmlns:o='opendocument' xmlns:t='t'><t:style t:name='C'><t:paragraph-properties "
             "t:text-align='center'/></t:style><o:body><o:text><t:p>water</t:p>%s</o:text></o:body></o:document>",
    ".json": "%s",
}  # fmt: skip
OF_TEXT = (" ", "\t", "\n", " \n", "\u3000", "-", ".", ". . ", "1.", "1 ", "A. ", "iv ", "*", "\"' ", "(", "[1] ", "1-")
CONSTRUCTS = {
    ".md": ("[", "![", "](", "[a](", "*a ", "**a", "_", "`", "`a ", "<a ", "<!--", "<!-- -->", "{#a ", "| a ", "> ",
            "<sup>", "<b hidden>", "<div hidden>", "{~~", "*a*b", "~a ", "%% a ", "%%\n", "&", "&#1", "&a;", "[水]{",
            "A A", "# " + "`" * 1_000 + "\n\n"),
    ".rst": ("`", "`a <", "*a ", "|a", ":a:", "_", "a_ ", "[1]_ ", "::\n\n", ".. a:: ", "  a\n"),
    ".html": ("<", "<p", "<p ", "<p a='", '<p a="b" ', "<!--", "<!-- -->", "</", "&", "&#", "<br>", "<b>a</b>",
              "<center><b>Aim</b></center>", "<p align=center>", "<font face=symbol>a</font>", "<div>A</div><p>im</p>"),
    ".xml": ("<p>a</p>", "<p/>", "<!-- -->", "<?a?>", "&amp;", "<b>a</b>", "<xref>1</xref>", "<del>a</del>",
             "<math alttext='a'/>"),
    ".dita": ("<p>a<fn>b</fn></p>", "<fn>b</fn>a", "<page/>", "<page/>a", "<b-title>a</b-title>", "<author>a</author>",
              "<num>1</num><title>a</title>", "<xref target='a'/>", "<p>&lt;b&gt;a&lt;/b&gt;</p>", "<date>2019</date>"),
    ".fodt": ("<t:p t:style-name='C'>Aim</t:p>", "<t:p>a</t:p>", "<t:s/>"),
    ".tex": (
        "{", "}", "{}", "[", "$", "$$", "\\", "\\a", "\\a ", "\\a{", "\\a[", "\\\\[", "\\hspace ", "% a\n", "#1",
        "1pt ", "\\begin{a}", "\\cite[", "\\section{", "\\newcommand{\\a}[", "\\NewDocumentCommand{\\a}{ ",
        "\\hspace" + " " * 99, "\\affiliation{a{b}", "\\affiliation{a}",
    ),
}  # fmt: skip
CASES = [(suffix, unit) for suffix in FRAMES for unit in (*OF_TEXT, *CONSTRUCTS.get(suffix, ()))]


def seconds_of(act: Callable[[int], object]) -> tuple[float, float]:
    """Processor time for the smaller and the larger size."""
    seconds = []
    for size in SIZES:
        started = process_time()
        act(size)
        seconds.append(process_time() - started)
    return seconds[0], seconds[1]


@pytest.mark.slow
@pytest.mark.parametrize(("suffix", "unit"), CASES)
def test_reading_takes_time_linear_in_the_source(suffix: str, unit: str) -> None:
    read = FORMATS[suffix].read
    assert read is not None

    def act(size: int) -> None:
        text = FRAMES[suffix] % (unit * (size // len(unit)))
        data = json.dumps({"id": "a", "text": f"water {text}"}) if suffix == ".json" else text
        try:
            read_documents = read(data.encode(), "a", f"a{suffix}")
            documents = [read_documents] if isinstance(read_documents, Document) else [*read_documents]
        except ValueError:
            return
        for document in documents:
            if not isinstance(document, Unreadable):
                section_kinds(document)
                sentence_starts(document.text)

    smaller, larger = seconds_of(act)
    assert larger < 0.5 + 60 * smaller  # 256 times for a search by the square


@pytest.mark.parametrize(
    ("start", "unit"),
    [("<!-- a -->", unit) for unit in ("<!-- -->", "<!--", "<!-- a --> ", "<article ", " ", "{", "\\document")]
    + [("---\na: 1\n", unit) for unit in ("\n", "\r\n", "a: ", "# a\n")]
    + [("# 1\n\n", unit) for unit in ("# ", "# 1\n\n", " ", "\n \n")],
)
def test_the_format_is_detected_in_time_linear_in_the_source(tmp_path: Path, start: str, unit: str) -> None:
    path = tmp_path / "upload"

    def act(size: int) -> None:
        path.write_text(start + unit * (size // len(unit)))
        assert detected_suffix(path) in (".txt", ".xml", ".html")

    smaller, larger = seconds_of(act)
    assert larger < 0.5 + 60 * smaller  # once, thirty comments took hours


def tex(text: str) -> object:
    read = FORMATS[".tex"].read
    assert read is not None
    return read(text.encode(), "a", "a.tex")


@pytest.mark.parametrize(
    ("act", "frame", "unit"),
    [
        (running_text, "water *1 flows *2 down%spipe", " "),
        *(
            (running_text, "water\n%s\nflows", unit)
            for unit in ("A  ", "-- page 1 --", "- 1 - ", "a    [", "\x08", "[Pg 1")
        ),
        *(
            (without_encoded, "data: %s", unit)
            for unit in ("data:a/b;", "data:a/b,", "begin 644 a\n", "begin 644 a\nM\n", "0f")
        ),
        (without_readings, "水%s", "｜水《"),
        (lambda text: divide_by(Document.from_text(f"Claims\n\n1. A\n{text}"), Unit.CLAIM), "%s", "[1 "),
        (tex, "\\documentclass{article}\\begin{document}water%s\\end{document}", "\\excludeversion{a}\\begin{a}"),
        *(
            (tex, "\\documentclass{article}\\begin{document}water%s}\n\n\\end{document}", unit)
            for unit in ("\\section{\n", "\\begin{tabbing}", "\\cref{a}\\label{a}")
        ),
        (lambda text: parse_safely(text.encode()), "<a>%s&nbsp;</a>", "<x:b y='1' y='2'/> & \x02"),
        (lambda text: case_fields(f"Court\n{text}"), "%s", "19-"),
        (front_matter, "%%%s", " "),
        (split_names, "Ann%sVane", " "),
        (is_contents_line, "water%s a 1", " "),
        (is_contents_line, "water%s a 1", "."),
        (heading_name, "1. water%s a", "."),
        (lambda text: references(f"of the {text[::1_500]}) § 1200"), "%s", "A"),
        (lambda text: patents.read_aps(text, "a", "a"), "PATN\nWKU  %sA\nABST\nPAL  water\n", "0"),
        (tex, "\\documentclass{article}%s\\begin{document}water\\end{document}", "a"),
        (tex, "\\documentclass{article}%s\\begin{document}water\\end{document}", "\\begin{abstract}"),
        (tex, "\\documentclass{article}\\author{%s}\\begin{document}water\\end{document}", "a"),
    ],
)
def test_a_pattern_takes_time_linear_in_the_text(act: Callable[[str], object], frame: str, unit: str) -> None:
    smaller, larger = seconds_of(lambda size: act(frame % (unit * (size // len(unit)))))
    assert larger < 0.5 + 60 * smaller
