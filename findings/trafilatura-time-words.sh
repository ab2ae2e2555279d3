#!/usr/bin/env bash
# trafilatura drops the words of <time> from the middle of a sentence: "signed on 11 November 1918 in France" has no date.
#
# Expected: <time> is an element of phrases, as <i> and <abbr> are (HTML Living Standard, 4.5.14). A date above an article may be
# taken for metadata, but in a sentence its words are text, all the more with favor_recall=True.
# What happens: <time> is removed with its words wherever it stands, and so are <output>, <label> and a <math> without an annotation
# in TeX. The sentence goes on behind the gap without a trace. <data>, <meter>, <dfn> and <var> keep their words.
# Who meets this: an indexer of histories, laws and chronicles, whose dates are marked, and of papers with MathML.
# Versions: trafilatura 2.3.1. Source: MANUALLY_CLEANED of trafilatura/settings.py.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check trafilatura==2.3.1 lxml==6.1.3 lxml_html_clean==0.4.6 2>/dev/null

"$folder/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import trafilatura

LOST = ("<time>{}</time>", "<output>{}</output>", "<label>{}</label>", "<math><mtext>{}</mtext></math>")
STAYS = ("{}", "<data value='1'>{}</data>", "<meter value='1'>{}</meter>", "<dfn>{}</dfn>", "<var>{}</var>", "<abbr>{}</abbr>")
SENTENCE = "The armistice was signed on {} in a railway carriage in France, and the guns fell silent at eleven in the morning."
PAGE = f"<html><body><article><h1>Armistice</h1>{'<p>{}</p>' * 3}</article></body></html>"


def words_kept(markup: str, favor_recall: bool) -> bool:
    sentence = SENTENCE.format(markup.format("11 November 1918"))
    page = PAGE.format(SENTENCE.format("a Monday"), sentence, "The keeper of the lodge wrote all of it down the same week.")
    text = trafilatura.extract(page, favor_recall=favor_recall)
    line = text.split("\n")[2]
    print(f"{markup.format('...')}, favor_recall={favor_recall}: {line[:61]}")
    assert line in (SENTENCE.format("11 November 1918"), SENTENCE.replace("{} ", ""))
    return "1918" in line


print("trafilatura", version("trafilatura"))
for favor_recall in (False, True):
    assert not any([words_kept(markup, favor_recall) for markup in LOST])
    assert all([words_kept(markup, favor_recall) for markup in STAYS])
PYTHON
