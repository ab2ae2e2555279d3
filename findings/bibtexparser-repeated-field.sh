#!/usr/bin/env bash
# bibtexparser 2: an entry that repeats one field is not among the entries.
#
# Expected: BibTeX keeps such an entry and warns that it ignores the second field. A file of
# three entries has three.
# What happens: the whole entry becomes a DuplicateFieldKeyBlock among failed_blocks, and entries and entries_dict do not have
# its key. Nothing is raised. The quickstart asks to look at failed_blocks; code written for version 1 does not.
# Who meets this: reference lists exported by programs that write two notes, keywords or URLs.
# Versions: bibtexparser 2.1.0. Source: issues 449 and 520 of sciunto-org/python-bibtexparser.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check bibtexparser==2.1.0 2>/dev/null

"$folder/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import bibtexparser

ENTRIES = """
@article{first, title = {One}, year = {2020}}
@article{second, title = {Two}, %s}
@article{third, title = {Three}, year = {2022}}
"""


def keys(fields: str) -> tuple[list[str], list[str]]:
    library = bibtexparser.parse_string(ENTRIES % fields)
    read = [entry.key for entry in library.entries]
    failed = [type(block).__name__ for block in library.failed_blocks]
    print(f"{fields}: entries {read}, failed blocks {failed}")
    assert set(library.entries_dict) == set(read)
    return read, failed


print("bibtexparser", version("bibtexparser"))
assert keys("note = {A}") == (["first", "second", "third"], [])
for fields in ("note = {A}, note = {B}", "keywords = {A}, keywords = {A}"):
    assert keys(fields) == (["first", "third"], ["DuplicateFieldKeyBlock"])
PYTHON
