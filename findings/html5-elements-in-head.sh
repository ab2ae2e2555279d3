#!/usr/bin/env bash
# The HTML parser of libxml2, by lxml, puts <main>, <article> and <section> into the head of a page without <body> tag.
#
# Expected: HTML lets authors leave out </head> and <body> (HTML Living Standard, "Optional tags"). The first element that
# cannot be in a head ends it, whichever element it is; html5lib does so. libxml2 has had a tokenizer of HTML 5 since
# 2.14, so its trees should have a body too.
# What happens: <p>, <div> and <h1> end the head. <main>, <article>, <section>, <header>, <nav>, <aside>, <footer> and
# <figure> do not: the tree has no body, and a program that reads the body, or leaves out the head, loses the whole page.
# Versions: lxml 6.1.3 with libxml2 2.14.6, html5lib 1.1.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check lxml==6.1.3 html5lib==1.1 2>/dev/null

"$folder/venv/bin/python" - <<'PYTHON'
import html5lib
from lxml import etree

PAGE = "<!doctype html><title>Sluices</title><{0}>The keeper raised the gate.</{0}>"
END_THE_HEAD = ("p", "div", "h1", "ul", "table")
STAY_IN_IT = ("main", "article", "section", "header", "nav", "aside", "footer", "figure")


def by_lxml(name: str) -> str:
    found = etree.fromstring(PAGE.format(name), etree.HTMLParser()).find(f".//{name}")
    return found.getparent().tag


def by_html5lib(name: str) -> str:
    found = html5lib.parse(PAGE.format(name), treebuilder="lxml", namespaceHTMLElements=False)
    return found.find(f".//{name}").getparent().tag


print("lxml", etree.__version__, "with libxml2", ".".join(map(str, etree.LIBXML_VERSION)))
for name in (*END_THE_HEAD, *STAY_IN_IT):
    print(f"<{name}> after the title: lxml puts it into the {by_lxml(name)}, html5lib into the {by_html5lib(name)}")
assert {by_html5lib(name) for name in (*END_THE_HEAD, *STAY_IN_IT)} == {"body"}
assert {by_lxml(name) for name in END_THE_HEAD} == {"body"}
assert {by_lxml(name) for name in STAY_IN_IT} == {"head"}
PYTHON
