#!/usr/bin/env bash
# tantivy and LanceDB never index "сельскохозяйственный", the Russian word for "agricultural": words end at 40 bytes, not at 40 letters.
#
# Expected: words that are longer than 40 characters are left out, as both document it ("max character length of token", "maximum token
# length"). No word of prose is that long, so text of any language is indexed.
# What happens: the length is counted in bytes of UTF-8 and has to be below 40. Words of 20 Cyrillic or Greek letters and of 14 Georgian ones
# are in no index. Queries go through the same filter: alone the word finds nothing, and in "agricultural AND rocket" only "rocket" has
# to match. The stemmer of Russian ("ru_stem") comes behind the filter, so every form of the word is lost.
# Who meets this: whoever searches laws and research of agriculture, Russian, Ukrainian or Greek, by keywords beside vectors.
# Versions: tantivy 0.27.0, lancedb 0.40.0. Source: RemoveLongFilter in tantivy/tokenizer/remove_long.rs says bytes; tantivy.Filter.remove_long
# of the Python package and lancedb.index.FTS do not.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check tantivy==0.27.0 lancedb==0.40.0 2>/dev/null

"$folder/venv/bin/python" -W ignore - "$folder" <<'PYTHON'
import sys
from importlib.metadata import version

import lancedb
import tantivy
from lancedb.index import FTS

SHORT, LONG = "налоговый", "сельскохозяйственный"  # of taxes; agricultural
GEORGIAN = "დამოუკიდებლობა"  # independence, 14 letters
TEXTS = [f"Единый {LONG} налог", f"Единый {SHORT} платеж", f"{GEORGIAN} და კანონი", f"{'a' * 39} {'b' * 40}"]

schema = tantivy.SchemaBuilder()
for tokenizer in ("default", "ru_stem"):
    schema.add_text_field(tokenizer, stored=True, tokenizer_name=tokenizer)
index = tantivy.Index(schema.build())
writer = index.writer(15_000_000, 1)
for text in TEXTS:
    writer.add_document(tantivy.Document(default=text, ru_stem=text))
writer.commit()
index.reload()
table = lancedb.connect(f"{sys.argv[1]}/lance").create_table("texts", [{"text": text} for text in TEXTS])
table.create_index("text", config=FTS(stem=False, remove_stop_words=False))


def by_tantivy(query: str, field: str) -> int:
    return len(index.searcher().search(index.parse_query(query, [field]), 10).hits)


def by_lancedb(query: str) -> int:
    return len(table.search(query, query_type="fts").limit(10).to_list())


print("tantivy", version("tantivy"), "lancedb", version("lancedb"))
print("tantivy:", tantivy.Filter.remove_long.__doc__.split("\n")[-1].strip())
found = {}
for word in (SHORT, LONG, GEORGIAN, "a" * 39, "b" * 40):
    found[word] = by_tantivy(word, "default"), by_tantivy(word, "ru_stem"), by_lancedb(word)
    print(f"{word}: {len(word)} letters, {len(word.encode())} bytes; found by tantivy, with ru_stem, and by LanceDB: {found[word]}")
assert found[SHORT] == found["a" * 39] == (1, 1, 1) and found[LONG] == found[GEORGIAN] == found["b" * 40] == (0, 0, 0)
for query in (f"{LONG} AND {SHORT}", f"+{LONG} +{SHORT}"):
    print(f"{query}: {by_tantivy(query, 'default')} text found by tantivy, and no text has both words")
    assert by_tantivy(query, "default") == 1
assert by_lancedb(f"{LONG} {SHORT}") == 1
PYTHON
