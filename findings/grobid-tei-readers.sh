#!/usr/bin/env bash
# GROBID: three readers of its TEI keep other parts of one paper: lists and footnotes are in one, formulas in two, captions in two.
#
# Expected: GROBID's own client and two packages for its TEI turn a paper into JSON or Markdown. "Lossy" in TEI2LossyJSON means tags and
# coordinates; each has the paragraphs, items, notes and captions that GROBID found, and they differ in names of fields.
# What happens: the JSON of grobid-client-python has no list and no footnote, and its Markdown, made by the same client, also no caption
# and no table. The package grobid drops lists, footnotes, formulas, captions of figures, acknowledgements, annexes, and each
# paragraph of a section without a heading, which GROBID writes where it finds none. grobid_tei_xml has all of
# it, in one string, in which "E = mc 2 (1)" stands in the sentence. A formula splits a paragraph in two in the other readers.
# Who meets this: whoever makes papers searchable by GROBID: steps, claims and criteria are lists, conditions are in footnotes.
# Versions: grobid-client-python 0.2.1, grobid 0.2.0, grobid-tei-xml 0.1.3, on a file in the form of GROBID 0.8. Source: none found for lists and notes;
# issue 41 of grobidOrg/grobid-client-python names the third.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    grobid-client-python==0.2.1 'grobid[json]==0.2.0' grobid-tei-xml==0.1.3 2>/dev/null

cat > "$folder/paper.tei.xml" <<'XML'
<?xml version="1.0" encoding="UTF-8"?>
<TEI xmlns="http://www.tei-c.org/ns/1.0">
<teiHeader xml:lang="en">
<fileDesc><titleStmt><title level="a" type="main">Gates of canals</title></titleStmt><publicationStmt><publisher/></publicationStmt>
<sourceDesc><biblStruct><analytic><author><persName><forename type="first">Ann</forename><surname>Doe</surname></persName></author>
<title level="a" type="main">Gates of canals</title></analytic>
<monogr><imprint><date type="published" when="2019-05-02"/></imprint></monogr></biblStruct></sourceDesc></fileDesc>
<encodingDesc><appInfo><application version="0.8.1" ident="GROBID" when="2024-05-01T10:00+0000"><desc>GROBID</desc></application></appInfo></encodingDesc>
<profileDesc><abstract><div xmlns="http://www.tei-c.org/ns/1.0"><p>This is abstracttext.</p></div></abstract></profileDesc>
</teiHeader>
<text xml:lang="en"><body>
<div xmlns="http://www.tei-c.org/ns/1.0"><head n="1">Introduction</head><p>Boats wait in paragraphtext <ref type="foot" target="#foot_0">1</ref> and</p>
<formula xml:id="formula_0">formulatext = 2 <label>(1)</label></formula><p>gates open.</p>
<list><item>They open in listtext.</item></list></div>
<div xmlns="http://www.tei-c.org/ns/1.0"><p>Gates shut in headlesstext.</p></div>
<note place="foot" n="1" xml:id="foot_0">Except in footnotetext.</note>
<figure xmlns="http://www.tei-c.org/ns/1.0" xml:id="fig_0"><head>Fig. 1.</head><label>1</label><figDesc>Boats in figuretext.</figDesc></figure>
<figure xmlns="http://www.tei-c.org/ns/1.0" type="table" xml:id="tab_0"><head>Table 1.</head><label>1</label><figDesc>Fees in tabletext.</figDesc>
<table><row><cell>celltext</cell><cell>5</cell></row></table></figure>
</body><back>
<div type="acknowledgement"><div xmlns="http://www.tei-c.org/ns/1.0"><head>Acknowledgements</head><p>Thanks in thankstext.</p></div></div>
<div type="annex"><div xmlns="http://www.tei-c.org/ns/1.0"><head>Annex</head><p>More in annextext.</p></div></div>
<div type="references"><listBibl/></div></back></text></TEI>
XML

"$folder/venv/bin/python" - "$folder/paper.tei.xml" <<'PYTHON'
import json
import re
import sys
from importlib.metadata import version
from pathlib import Path

import grobid_tei_xml
from grobid.tei import Parser
from grobid_client.format.TEI2LossyJSON import TEI2LossyJSONConverter
from grobid_client.format.TEI2Markdown import TEI2MarkdownConverter

path = Path(sys.argv[1])
PARTS = set(re.findall(r"\w+text\b", path.read_text())) - {"text"}
texts = {
    "client, JSON": json.dumps(TEI2LossyJSONConverter().convert_tei_file(str(path), stream=False)),
    "client, Markdown": TEI2MarkdownConverter().convert_tei_file(str(path)),
    "grobid": str(Parser(path.read_bytes()).parse().to_json()),
    "grobid_tei_xml": json.dumps(grobid_tei_xml.parse_document_xml(path.read_text()).to_dict()),
}
lost = {name: {part.removesuffix("text") for part in PARTS if part not in text} for name, text in texts.items()}
print(*(f"{name} {version(name)}" for name in ("grobid-client-python", "grobid", "grobid-tei-xml")), sep=", ")
for name, parts in lost.items():
    print(f"{name} of {len(PARTS)} parts loses {sorted(parts)}")
assert len(PARTS) == 11
assert lost == {
    "client, JSON": {"list", "footnote"},
    "client, Markdown": {"list", "footnote", "figure", "table", "cell"},
    "grobid": {"list", "footnote", "formula", "figure", "headless", "thanks", "annex"},
    "grobid_tei_xml": set(),
}
PYTHON
