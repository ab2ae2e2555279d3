#!/usr/bin/env bash
# model2vec: of 400 words, less than the limit of 512 tokens, a vector holds all, and 241 if each is on an indented line.
#
# Expected: max_length is in tokens, 512 if nothing is said. This tokenizer makes no tokens of spaces, as that of BERT does not, so the
# same words give the same vector.
# What happens: before the tokenizer sees a text it is cut to max_length times the median length of the tokens in the vocabulary, in
# letters, spaces among them. Prose has about as many letters per word as the median, so nothing is lost there; in text of a page
# with columns, indented sections or dotted lines the end is cut off long before 512 tokens. max_length=None has all.
# Who meets this: whoever embeds statutes, filings or what "pdftotext -layout" makes, and has counted tokens before.
# Versions: model2vec 0.10.0, tokenizers 0.23.3. Source: pull request 47 of MinishLab/model2vec, which measured it on Wikipedia.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check model2vec==0.10.0 tokenizers==0.23.3 numpy==2.4.6 2>/dev/null

"$folder/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from model2vec import StaticModel
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

WORDS = 400
vocabulary = {"[UNK]": 0, "[PAD]": 1} | {f"word{number:04}": number + 2 for number in range(3000)}
tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
tokenizer.pre_tokenizer = Whitespace()
model = StaticModel(np.eye(len(vocabulary), dtype="float32"), tokenizer)  # one place of the vector for each word


def words_in_vector(between: str, **options: None) -> int:
    text = between.join(f"word{number:04}" for number in range(WORDS))
    n_tokens = len(tokenizer.encode(text).ids)
    n_words = int(np.count_nonzero(model.encode(text, **options)))
    print(f"{between!r} between words {options}: {n_tokens} tokens, {len(text)} letters, {n_words} words in the vector")
    assert n_tokens == WORDS
    return n_words


print("model2vec", version("model2vec"), "limit", model.max_length, "median length of a token", model.median_token_length)
assert model.max_length == 512 and model.median_token_length == 8
assert words_in_vector(" ") == WORDS
assert words_in_vector("\n        ") < 0.7 * WORDS
assert words_in_vector(" " * 30) < 0.3 * WORDS
assert words_in_vector("\n        ", max_length=None) == WORDS
PYTHON
