#!/usr/bin/env bash
# langchain-text-splitters: add_start_index gives -1 for half of the chunks when the length is counted in words.
#
# Expected: start_index is the place of the chunk in the text. Every chunk is found in the text letter for letter, so every
# chunk has a place, whatever function measures its length.
# What happens: the search for a chunk begins at the end of the last one less chunk_overlap, taken as characters. If lengths are
# words or tokens, that is behind the true start, and find() gives -1. The next chunk is then sought from the beginning and is
# found, so every second one is -1. Without overlap, or with len, all are right.
# Who meets this: retrieval that cuts chunks by the tokens of its model and shows the place in the source.
# Versions: langchain-text-splitters 1.1.3. Source: issues 17642 and 29884 of langchain-ai/langchain.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check langchain-text-splitters==1.1.3 2>/dev/null

"$folder/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

from langchain_text_splitters import RecursiveCharacterTextSplitter

TEXT = " ".join(f"word{number}" for number in range(2000))


def count_words(text: str) -> int:
    return len(text.split())


def share_without_place(size: int, overlap: int, length) -> float:
    splitter = RecursiveCharacterTextSplitter(
        chunk_size=size, chunk_overlap=overlap, length_function=length, add_start_index=True
    )
    chunks = splitter.create_documents([TEXT])
    assert all(chunk.page_content in TEXT for chunk in chunks)
    starts = [chunk.metadata["start_index"] for chunk in chunks]
    print(f"{length.__name__}, overlap {overlap}: {starts.count(-1)} of {len(starts)} chunks at -1; first ones {starts[:6]}")
    return starts.count(-1) / len(starts)


print("langchain-text-splitters", version("langchain-text-splitters"))
assert share_without_place(400, 80, len) == 0
assert share_without_place(50, 0, count_words) == 0
for overlap in (10, 20):
    assert share_without_place(50, overlap, count_words) == 0.5
PYTHON
