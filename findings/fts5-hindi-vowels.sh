#!/usr/bin/env bash
# SQLite FTS5: a search for "दिन" (day) finds and marks "दान" (gift) and "दीन" (poor); bm25s and Whoosh keep 2 of the 4 words of such a sentence.
#
# Expected: a word of Hindi is a word. A tokenizer named unicode61, or a pattern of Unicode letters (\w), keeps it whole, as the tokenizer of
# tantivy does, or cuts it where a word may be cut. What a phrase query finds contains the word that was typed.
# What happens: most vowels of the scripts of India are signs on a letter, which Unicode calls marks and not letters. unicode61 takes marks for
# blanks, so "दिन", "दान" and "दीन" are all the two tokens "द न", and each finds the others, with highlight() around the wrong word. In bm25s
# and Whoosh (\w\w+) the signs cut too, and the single letters left over are then dropped: "day", "is" and "book" are in no index. No warning.
# Who meets this: whoever searches Hindi, Marathi, Nepali, Bengali, Tamil or Telugu by keywords beside vectors. tokenize="unicode61 categories
# 'L* N* M* Co'" mends the first, a token_pattern with marks the second.
# Versions: SQLite 3.54.1 by apsw 3.54.1.0, bm25s 0.3.16, Whoosh-Reloaded 2.7.5, tantivy 0.27.0. Source: "Unicode61 Tokenizer" of
# sqlite.org/fts5.html has the categories, not what they mean for a script; issue 966 of tobi/qmd has the like for decomposed French.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    apsw==3.54.1.0 bm25s==0.3.16 Whoosh-Reloaded==2.7.5 tantivy==0.27.0 numpy==2.4.6 2>/dev/null

"$folder/venv/bin/python" - 2>/dev/null <<'PYTHON'
from importlib.metadata import version

import apsw
import bm25s
import tantivy
from whoosh.analysis import StandardAnalyzer

DAY, GIFT, POOR = "दिन", "दान", "दीन"
DOCUMENTS = [f"यह {DAY} अच्छा है", f"यह {GIFT} अच्छा है", f"यह {POOR} अच्छा है", "किताब मेज पर है"]

print(f"SQLite {apsw.sqlite_lib_version()},", *(f"{name} {version(name)}" for name in ("bm25s", "Whoosh-Reloaded", "tantivy")))


def marked(options: str) -> list[str]:
    """What FTS5 finds for "day", with its marks."""
    database = apsw.Connection(":memory:")
    database.execute(f"create virtual table page using fts5(text{options})")
    database.executemany("insert into page values(?)", [(text,) for text in DOCUMENTS])
    rows = database.execute("select highlight(page, 0, '[', ']') from page where page match ? order by rowid", (DAY,))
    found = [text for (text,) in rows]
    print(f"FTS5{options}: {found}")
    return found


def tantivy_finds(word: str) -> list[str]:
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("text", stored=True)
    index = tantivy.Index(builder.build())
    writer = index.writer(15_000_000, 1)
    for text in DOCUMENTS:
        writer.add_document(tantivy.Document(text=text))
    writer.commit()
    index.reload()
    searcher = index.searcher()
    return [searcher.doc(address)["text"][0] for _, address in searcher.search(index.parse_query(word, ["text"])).hits]


assert marked("") == [text.replace(word, f"[{word}]") for text, word in zip(DOCUMENTS, (DAY, GIFT, POOR))]
assert marked(""", tokenize="unicode61 categories 'L* N* M* Co'" """) == [DOCUMENTS[0].replace(DAY, f"[{DAY}]")]
assert tantivy_finds(DAY) == DOCUMENTS[:1]
print("tantivy:", tantivy_finds(DAY))
of_bm25s = list(bm25s.tokenize(DOCUMENTS, stopwords=None, show_progress=False).vocab)
of_whoosh = [token.text for text in DOCUMENTS for token in StandardAnalyzer()(text)]
print("words of all documents:", sorted({word for text in DOCUMENTS for word in text.split()}))
print("of bm25s:", of_bm25s, "of Whoosh:", sorted(set(of_whoosh)))
assert set(of_bm25s) == set(of_whoosh) == {"यह", "अच", "पर"}
PYTHON
