#!/usr/bin/env bash
# tantivy for Python: the ranges of a snippet count bytes of UTF-8, and the fragment is a str, so slices mark the wrong letters.
#
# Expected: fragment() gives a str and highlighted() ranges in it; fragment()[range.start:range.end] is the word that matched,
# as it is in English text.
# What happens: the ranges are those of Rust, in bytes. Every letter beyond ASCII before the match moves the slice to the right
# by one or more. Only encode(), slice and decode() gives the word. to_html() of the same snippet marks the right word.
# Who meets this: any page of results in another language than English that draws its own marks.
# Versions: tantivy 0.27.0. Source: none found; seen by running this.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check tantivy==0.27.0 2>/dev/null

"$folder/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import tantivy


def marked(text: str, word: str) -> tuple[str, str]:
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("body", stored=True)
    schema = builder.build()
    index = tantivy.Index(schema)
    writer = index.writer(15_000_000, 1)
    writer.add_document(tantivy.Document(body=text))
    writer.commit()
    index.reload()
    searcher, query = index.searcher(), index.parse_query(word, ["body"])
    snippet = tantivy.SnippetGenerator.create(searcher, query, schema, "body").snippet_from_doc(
        searcher.doc(searcher.search(query).hits[0][1])
    )
    (place,) = snippet.highlighted()
    fragment = snippet.fragment()
    by_letters = fragment[place.start : place.end]
    by_bytes = fragment.encode()[place.start : place.end].decode()
    print(f"{snippet.to_html()!r}: {place.start} to {place.end}, as letters {by_letters!r}, as bytes {by_bytes!r}")
    assert f"<b>{word}</b>" in snippet.to_html()
    return by_letters, by_bytes


print("tantivy", version("tantivy"))
assert marked("A ferry sells one apple in the morning.", "apple") == ("apple", "apple")
assert marked("Über Käse schrieb der Müller: ein Apfel fällt.", "Apfel") == ("el fä", "Apfel")
PYTHON
