#!/usr/bin/env bash
# Kreuzberg: of a JATS article the captions of tables are in the text, and those of figures, terms of definitions and listings are not.
#
# Expected: a reader of JATS keeps the words of an article, as lxml does without knowing the format: an element that it does not know
# gives its text, or is left out together with all of its kind. Captions of figures and of tables are one element, <caption>.
# What happens: <fig> is left out with label, title and caption, <term> of a definition (the definition stays, of nothing), <preformat>,
# <code>, <verse-line> and <speaker>. Around each inline element a blank is set: "NdeI" is "Nde I", "H2O" is "H 2 O" and "(A)." is
# "( A ) .", so names of genes, enzymes and compounds fall apart. No error, no warning; tables, boxes, quotations and notes are all there.
# Who meets this: whoever indexes PubMed Central: what a figure shows is said in its caption alone, and "NdeI" is not found.
# Versions: kreuzberg 4.10.4, lxml 6.1.3. Source: none found; seen by running this.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check kreuzberg==4.10.4 lxml==6.1.3 2>/dev/null

"$folder/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import kreuzberg
from lxml import etree

ARTICLE = """<?xml version="1.0"?>
<!DOCTYPE article PUBLIC "-//NLM//DTD JATS (Z39.96) Journal Archiving and Interchange DTD v1.2 20190208//EN" "JATS-archivearticle1.dtd">
<article><front><article-meta><title-group><article-title>Gates</article-title></title-group></article-meta></front>
<body><sec><title>Results</title>{}</sec></body></article>"""
KEPT = {
    "table": (
        "<table-wrap><caption><p>Fees of gates.</p></caption><table><thead><tr><th>boat</th></tr></thead>"
        "<tbody><tr><td>five</td></tr></tbody></table></table-wrap>"
    ),
    "box": "<boxed-text><p>Shut the gate.</p></boxed-text>",
    "quotation": "<disp-quote><p>It was open.</p></disp-quote>",
    "note": "<p>Boats wait.<fn><p>Not in spring.</p></fn></p>",
}
LOST = {
    "figure": "<fig><label>Figure 1.</label><caption><title>Flow.</title><p>Salmon at the gate.</p></caption></fig>",
    "term": "<def-list><def-item><term>Sluice</term><def><p>Gate of a canal.</p></def></def-item></def-list>",
    "listing": "<preformat>open(gate)</preformat>",
    "code": "<code>shut(gate)</code>",
    "verse": "<verse-group><verse-line>Water falls.</verse-line></verse-group>",
    "speaker": "<speech><speaker>Miller</speaker><p>It is shut.</p></speech>",
}


def kreuzberg_text(body: str) -> str:
    return kreuzberg.extract_bytes_sync(ARTICLE.format(body).encode(), "application/x-jats+xml").content


def words(body: str) -> set[str]:
    return set(" ".join(etree.fromstring(f"<sec>{body}</sec>").itertext()).split())


print("kreuzberg", version("kreuzberg"), "lxml", version("lxml"))
missing = {}
for name, body in (KEPT | LOST).items():
    missing[name] = words(body) - set(kreuzberg_text(body).split())
    print(f"{name}: missing {sorted(missing[name])}")
assert not any(missing[name] for name in KEPT)
assert missing["figure"] == {"Figure", "1.", "Flow.", "Salmon", "at", "the", "gate."}
assert missing["term"] == {"Sluice"} and missing["speaker"] == {"Miller"}
assert all(missing[name] == words(LOST[name]) for name in ("listing", "code", "verse"))

inline = "<p>Enzyme <italic>Nde</italic>I cuts in H<sub>2</sub>O (<bold>A</bold>).</p>"
sentence = kreuzberg_text(inline).split("\n\n")[-1]
print(f"{''.join(etree.fromstring(inline).itertext())!r} is {sentence!r}")
assert sentence == "Enzyme Nde I cuts in H 2 O ( A )."
PYTHON
