#!/usr/bin/env bash
# markdown-it-py: the default preset "commonmark" drops the text of list items from the tenth level on.
#
# Expected: CommonMark knows no limit for nested lists. An outline of twelve levels has twelve items, and a parser that gives up
# at some depth leaves the rest as plain text or reports it.
# What happens: the preset sets maxNesting to 20, and a level of a list takes two. The tenth item is empty; it and all that is
# below it are not in the tokens at all. The preset "default" (maxNesting 100) has them all.
# Who meets this: an indexer of outlines, minutes and exported mind maps: the text cannot be found.
# Versions: markdown-it-py 4.3.0. Source: issue 1025 of markdown-it/markdown-it, issue 584 of hukkin/mdformat.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check markdown-it-py==4.3.0 2>/dev/null

"$folder/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

from markdown_it import MarkdownIt

LEVELS = 12
OUTLINE = "\n".join("  " * level + f"- item{level + 1:02}" for level in range(LEVELS))


def levels_with_text(parser: MarkdownIt) -> list[int]:
    tokens = parser.parse(OUTLINE)
    text = " ".join(token.content for token in tokens)
    return [level for level in range(1, LEVELS + 1) if f"item{level:02}" in text]


print("markdown-it-py", version("markdown-it-py"))
for name, parser, levels in (
    ("no preset named", MarkdownIt(), 9),
    ("commonmark", MarkdownIt("commonmark"), 9),
    ("commonmark, maxNesting 100", MarkdownIt("commonmark", {"maxNesting": 100}), LEVELS),
    ("default", MarkdownIt("default"), LEVELS),
):
    present = levels_with_text(parser)
    print(f"{name}: text of levels {present}")
    assert present == list(range(1, levels + 1))
PYTHON
