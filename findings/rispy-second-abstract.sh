#!/usr/bin/env bash
# rispy: of an abstract in two AB fields the second is dropped, but its wrapped lines are joined to the first: a sentence of neither.
#
# Expected: a field that comes twice in a record gives both values, the last one, or a warning. A line without a tag continues the
# field right above it.
# What happens: the first value stays and later ones are dropped without a word, the second ISSN and DOI too, while a tag that rispy
# does not know keeps all of its values. The dropped field's further lines are appended to the value that stays, so
# "We open the gate." and "We asked ten / keepers about it." are "We open the gate. keepers about it."
# Who meets this: reviewers and indexers of RIS from several databases: abstracts in paragraphs, print and electronic ISSN.
# Versions: rispy 0.10.0. Source: _add_single_value in rispy/parser.py; enforce_list_tags=False makes lists of such fields.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check rispy==0.10.0 2>/dev/null

"$folder/venv/bin/python" -W error - <<'PYTHON'
from importlib.metadata import version

import rispy

RECORD = """TY  - JOUR
TI  - On gates
AB  - We open the gate.
AB  - We asked ten
keepers about it.
SN  - 1111-1111
SN  - 2222-2222
X1  - known to nobody
X1  - nor is this
ER  -
"""
print("rispy", version("rispy"))
(record,) = rispy.loads(RECORD)
for field in ("abstract", "issn", "unknown_tag"):
    print(f"{field}: {dict(record[field]) if field == 'unknown_tag' else record[field]}")
assert record["abstract"] == "We open the gate. keepers about it."
assert record["issn"] == "1111-1111"
assert record["unknown_tag"]["X1"] == ["known to nobody", "nor is this"]
PYTHON
