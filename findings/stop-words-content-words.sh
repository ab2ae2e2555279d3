#!/usr/bin/env bash
# The English list of stop-words grew from 174 to 1,333 words, among them "invention", "research" and "microsoft".
#
# Expected: stop_words.get_stop_words("english") gives words of grammar, some two hundred, and a newer release adds a few
# forgotten ones. A program that leaves them out of search or of marked words loses nothing that carries meaning.
# What happens: since the releases of 2025 the list holds nouns, verbs, names of companies and parts of addresses. A search
# in patents drops "invention", one in science "research", "results" and "system". Half of the other lists grew by half
# too: "trabajo" and "trabalho" (work), "valor" (value). Upgrading changes what a query finds, without a warning.
# Versions: stop-words 2018.7.23 and 2025.11.4.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
for version in 2018.7.23 2025.11.4; do
    "$folder/venv/bin/pip" install --quiet --disable-pip-version-check --target "$folder/$version" "stop-words==$version" \
        2>/dev/null
done

cat >"$folder/sizes.py" <<'PYTHON'
import json, sys
from stop_words import get_stop_words

CONTENT = {
    "english": ["invention", "research", "results", "system", "computer", "microsoft", "netscape", "http"],
    "spanish": ["trabajo", "valor", "tiempo"],
    "portuguese": ["trabalho", "valor", "tempo"],
}
lists = {language: get_stop_words(language) for language in ("english", "german", "spanish", "portuguese")}
print(json.dumps({
    "sizes": {language: len(words) for language, words in lists.items()},
    "content words": {language: [word for word in words if word in lists[language]] for language, words in CONTENT.items()},
}, ensure_ascii=False))
PYTHON
old=$(PYTHONPATH="$folder/2018.7.23" "$folder/venv/bin/python" "$folder/sizes.py")
new=$(PYTHONPATH="$folder/2025.11.4" "$folder/venv/bin/python" "$folder/sizes.py")
printf 'stop-words 2018.7.23: %s\nstop-words 2025.11.4: %s\n' "$old" "$new"

"$folder/venv/bin/python" - "$old" "$new" <<'PYTHON'
import json, sys

old, new = map(json.loads, sys.argv[1:])
assert old["sizes"]["english"] == 174 and new["sizes"]["english"] == 1333
assert old["content words"]["english"] == [] and len(new["content words"]["english"]) == 8
PYTHON
