#!/usr/bin/env bash
# ir_datasets: of a corpus in a TSV file, a document that was added or corrected is never seen again once docs_store() was called.
#
# Expected: create_dataset(docs_tsv=...) reads the file that it is given. The store of documents may be cached, but docs_iter(), which reads
# the file in order, has what is in the file, and a changed file makes a new store or an error.
# What happens: docs_store() writes a folder beside the file (docs.tsv.pklz4), and from then on docs_iter(), docs_count() and docs_store()
# all read that folder, in this process and in later ones, without a look at the file. New documents are missing from an index that is built
# again, with a KeyError only if asked for by id; corrected ones have their old text. Before the first docs_store() docs_iter() is right, so
# it depends on whether a reranker ever ran. Queries and judgments are read from their files.
# Who meets this: whoever evaluates a collection of one's own that grows or is cleaned; PyTerrier, too, reads collections through this.
# Versions: ir_datasets 0.6.3. Source: TsvDocs in ir_datasets/formats/tsv.py and PickleLz4FullStore; none found among the issues.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check ir_datasets==0.6.3 2>/dev/null

cat >"$folder/read.py" <<'PYTHON'
import os
import sys
from importlib.metadata import version

os.environ["IR_DATASETS_HOME"] = os.path.join(sys.argv[1], "home")
import ir_datasets

corpus, queries = (os.path.join(sys.argv[1], name) for name in ("docs.tsv", "queries.tsv"))
dataset = ir_datasets.create_dataset(docs_tsv=corpus, queries_tsv=queries)
if "store" in sys.argv:
    dataset.docs_store().get("a")
documents = {document.doc_id: document.text for document in dataset.docs_iter()}
print(f"{sys.argv[2]}: {documents}, queries {[query.text for query in dataset.queries_iter()]}")
assert documents == dict(pair.split("=") for pair in sys.argv[3].split(","))
PYTHON

read_corpus() { "$folder/venv/bin/python" "$folder/read.py" "$folder" "$@" 2>/dev/null; }

"$folder/venv/bin/pip" list 2>/dev/null | grep ir.datasets
printf 'a\tfirst draft\n' >"$folder/docs.tsv"
printf '1\triver\n' >"$folder/queries.tsv"
read_corpus "one document" "a=first draft"
printf 'a\tsecond draft\nb\tadded\n' >"$folder/docs.tsv"
read_corpus "corrected, one added" "a=second draft,b=added"
read_corpus "the same, and docs_store()" "a=second draft,b=added" store
printf 'a\tthird draft\nb\tadded\nc\tadded later\n' >"$folder/docs.tsv"
printf '1\tbridge\n' >"$folder/queries.tsv"
read_corpus "corrected and added again" "a=second draft,b=added"
rm -r "$folder/docs.tsv.pklz4"
read_corpus "the folder beside it removed" "a=third draft,b=added,c=added later"
