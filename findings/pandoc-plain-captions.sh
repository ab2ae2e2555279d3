#!/usr/bin/env bash
# pandoc: in plain text a figure keeps its caption if it is one bare image; around a link, two images, a listing or JATS it is gone.
#
# Expected: a caption is text. It is in "plain" output as that of a table is, wherever the figure comes from; "[Caption]" stands for
# <figure><img><figcaption> and for LaTeX.
# What happens: the writer of plain text prints the content of a figure and not its caption. Only a figure of one image alone is
# printed as its caption. <a><img></a>, <p><img></p>, two images, <pre> and <table> in an HTML figure, two \includegraphics, and every
# <fig> of JATS, whose <graphic> becomes a paragraph, lose it: "[]" is left, or the text for the blind (<alt-text>). No warning with
# --verbose. Markdown and HTML output of the same document have all captions.
# Who meets this: whoever makes articles of PubMed Central plain text for an index: what a figure shows is said in its caption alone.
# Versions: pandoc 3.9 by pypandoc-binary 1.17. Source: issue 8871 of jgm/pandoc sees it in RST, where some of it is mended.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pypandoc-binary==1.17 2>/dev/null

"$folder/venv/bin/python" - <<'PYTHON'
import pypandoc

HTML = "<figure>{}<figcaption>Gates of the lock.</figcaption></figure>"
LATEX = r"\begin{{document}}\begin{{figure}}{}\caption{{Gates of the lock.}}\end{{figure}}\end{{document}}"
JATS = "<article xmlns:xlink='http://www.w3.org/1999/xlink'><body><p>Text.</p>{}</body></article>"
CAPTION = "<caption><p>Gates of the lock.</p></caption>"
GRAPHIC = "<graphic xlink:href='a.png'/>"
TABLE = "<table><tbody><tr><td>5</td></tr></tbody></table>"
KEPT = {
    "html": [HTML.format("<img src='a.png'>"), "<table><caption>Gates of the lock.</caption><tr><td>5</td></tr></table>"],
    "latex": [LATEX.format(r"\includegraphics{a.png}")],
    "jats": [JATS.format(f"<table-wrap>{CAPTION}{TABLE}</table-wrap>")],
}
IN_FIGURE = ["<a href='b'><img src='a.png'></a>", "<p><img src='a.png'></p>", "<img src='a.png'><img src='b.png'>", "<pre>x</pre>"]
LOST = {
    "html": [HTML.format(content) for content in (*IN_FIGURE, TABLE)],
    "latex": [LATEX.format(r"\includegraphics{a.png}\includegraphics{b.png}")],
    "jats": [
        JATS.format(f"<fig id='f1'><label>Figure 1</label>{CAPTION}{GRAPHIC}</fig>"),
        JATS.format(f"<fig id='f1'>{CAPTION}<graphic xlink:href='a.png'><alt-text>A photograph.</alt-text></graphic></fig>"),
    ],
}


def has_caption(source: str, source_format: str, target: str) -> bool:
    text = pypandoc.convert_text(source, target, format=source_format, extra_args=["--wrap=none"])
    if target == "plain":
        print(f"{source_format}: {source}\n    {text!r}")
    return "Gates of the lock." in text


print("pandoc", pypandoc.get_pandoc_version())
for figures, kept in ((KEPT, True), (LOST, False)):
    for source_format, sources in figures.items():
        for source in sources:
            assert has_caption(source, source_format, "plain") == kept
            assert has_caption(source, source_format, "markdown") and has_caption(source, source_format, "html")
PYTHON
