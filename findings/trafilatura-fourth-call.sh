#!/usr/bin/env bash
# trafilatura: with deduplicate=True the same page has a text three times, and none from the fourth call on.
#
# Expected: extract() is a function of the page and its options. deduplicate removes the parts that one page repeats, so the
# second and the tenth call give the text of the first one.
# What happens: the parts of all pages are counted in one cache of the process. A part that was seen too often is dropped, and
# when nothing is left extract() returns None, as for an empty page.
# Who meets this: a service that reads pages again when they change, tests that share a page, pages with a common notice.
# Versions: trafilatura 2.3.1. Source: issues 17 and 778 of adbar/trafilatura.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check trafilatura==2.3.1 lxml==6.1.3 lxml_html_clean==0.4.6 2>/dev/null

"$folder/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import trafilatura

SENTENCE = (
    "The river ferry crosses every twenty minutes between the old mill and the lower market, "
    "except on Sundays and during spring floods of number {}."
)
PARAGRAPHS = "".join(f"<p>{SENTENCE.format(number)}</p>" for number in range(6))
PAGE = f"<html><body><article><h1>Ferry</h1>{PARAGRAPHS}</article></body></html>"


def lengths(calls: int, deduplicate: bool) -> list[int | None]:
    texts = [trafilatura.extract(PAGE, deduplicate=deduplicate) for _ in range(calls)]
    characters = [None if text is None else len(text) for text in texts]
    print(f"deduplicate={deduplicate}: characters by call {characters}")
    return characters


print("trafilatura", version("trafilatura"))
plain = lengths(6, deduplicate=False)
assert None not in plain and len(set(plain)) == 1
repeated = lengths(6, deduplicate=True)
assert repeated == plain[:3] + [None] * 3
PYTHON
