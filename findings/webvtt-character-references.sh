#!/usr/bin/env bash
# WebVTT: ">> Judge: AT&T is here" is "&gt;&gt; Judge: AT&amp;T is here" in the text of webvtt-py and pysubs2, which drop the tags.
#
# Expected: text and plaintext are what a viewer sees: tags such as <v Ann> and <i> are gone, and the references that WebVTT needs
# for &, < and > are the signs they stand for (WebVTT, 6.4 "cue text parsing rules").
# What happens: both remove the tags and keep the references, so "amp", "gt" and "nbsp" are words of the transcript. pysubs2 also
# takes words in braces away, which mean nothing in WebVTT and are orders in its own format; webvtt-py keeps them.
# Who meets this: indexers of hearings and lectures. Captions by hand begin each speaker with >>, which is &gt;&gt; in the file.
# Versions: webvtt-py 0.6.0, pysubs2 1.8.1.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check webvtt-py==0.6.0 pysubs2==1.8.1 2>/dev/null

"$folder/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import pysubs2
import webvtt

CUES = {
    "<v Ann>The <i>gate</i> is old</v>": ("The gate is old", "The gate is old"),
    "&gt;&gt; Judge: AT&amp;T is here": ("&gt;&gt; Judge: AT&amp;T is here",) * 2,
    "a loss of 3&nbsp;%, if x &lt; 1": ("a loss of 3&nbsp;%, if x &lt; 1",) * 2,
    "the set {a, b} is empty": ("the set {a, b} is empty", "the set  is empty"),
}
print(*(f"{name} {version(name)}" for name in ("webvtt-py", "pysubs2")), sep=", ")
for cue, expected in CUES.items():
    file = f"WEBVTT\n\n00:00:01.000 --> 00:00:02.000\n{cue}\n"
    texts = webvtt.from_string(file)[0].text, pysubs2.SSAFile.from_string(file)[0].plaintext
    print(f"{cue!r}: {texts[0]!r} and {texts[1]!r}")
    assert texts == expected
PYTHON
