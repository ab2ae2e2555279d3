#!/usr/bin/env bash
# snowballstemmer 3.1.1 gives other stems, and knows fewer languages, where an older PyStemmer is installed beside it.
#
# Expected: snowballstemmer is written in Python and its stems follow from its own version; a lock file that pins it pins them.
# What happens: stemmer() hands over to PyStemmer, of whatever version, if that can be imported. With PyStemmer 2.2.0.3 (the
# algorithms before Snowball 3) "emergency" is "emerg" again and not "emergenc", "evening" is "even" and not "evening",
# "l'eau" keeps its article, and Estonian is a KeyError. Nothing is logged.
# Who meets this: an index built on one machine and searched on another, where some other package brought PyStemmer.
# Versions: snowballstemmer 3.1.1, PyStemmer 2.2.0.3. Source: snowballstemmer/__init__.py.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check snowballstemmer==3.1.1 2>/dev/null

cat >"$folder/stems.py" <<'PYTHON'
import json
import snowballstemmer

WORDS = {"english": ("emergency", "evening", "internal", "lateral"), "french": ("l'eau",), "dutch": ("sluizen",), "estonian": ("vesi",)}
stems = {}
for language, words in WORDS.items():
    try:
        stemmer = snowballstemmer.stemmer(language)
        stems |= {word: stemmer.stemWord(word) for word in words}
    except KeyError as error:
        stems |= {word: repr(error) for word in words}
print(json.dumps(stems))
PYTHON
alone=$("$folder/venv/bin/python" "$folder/stems.py")
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check PyStemmer==2.2.0.3 2>/dev/null
beside=$("$folder/venv/bin/python" "$folder/stems.py")
printf 'snowballstemmer 3.1.1 alone: %s\nwith PyStemmer 2.2.0.3: %s\n' "$alone" "$beside"

"$folder/venv/bin/python" - "$alone" "$beside" <<'PYTHON'
import json, sys

alone, beside = map(json.loads, sys.argv[1:])
assert (alone["emergency"], beside["emergency"]) == ("emergenc", "emerg")
assert (alone["evening"], beside["evening"]) == ("evening", "even")
assert (alone["l'eau"], beside["l'eau"]) == ("eau", "l'eau")
assert alone["vesi"] == "vesi" and "KeyError" in beside["vesi"]
PYTHON
