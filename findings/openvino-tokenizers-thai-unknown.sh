#!/usr/bin/env bash
# OpenVINO Tokenizers: a Thai phrase of 34 letters is one [UNK] in the converted tokenizer of a BERT model, and 34 pieces in the original.
#
# Expected: convert_tokenizer() makes a model that gives the same ids. The vocabulary is copied, and so is the limit of WordPiece, which in
# BERT is 100 characters for one word.
# What happens: the limit is not read. It is 100 bytes of UTF-8, even if the original has another one. Latin words and most others are shorter,
# so tests pass. Thai, Lao, Khmer and Burmese have no spaces between words and 3 bytes a letter: a phrase of more than 33 letters, which
# is nearly each one, becomes a single unknown token, and all such phrases get one vector. Nothing is logged.
# Who meets this: whoever serves LaBSE or another multilingual model of WordPiece by OpenVINO: queries and documents of these languages.
# Versions: openvino-tokenizers 2026.4.1.0, transformers 5.23.0, tokenizers 0.23.3.
# Source: WordPieceTokenizationStep of openvino_tokenizers/tokenizer_pipeline.py; none found among the issues.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    openvino==2026.4.1 openvino-tokenizers==2026.4.1.0 transformers==5.23.0 tokenizers==0.23.3 2>/dev/null

"$folder/venv/bin/python" - 2>/dev/null <<'PYTHON'
from importlib.metadata import version

import openvino
from openvino_tokenizers import convert_tokenizer
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

PHRASE = "กฎหมายว่าด้วยการคุ้มครองข้อมูลส่วนบุคคลและการรักษาความมั่นคง"  # the law on the protection of personal data and on security
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
letters = sorted({*PHRASE, *"abcdefghijklmnopqrstuvwxyz"})
vocabulary = {token: number for number, token in enumerate([*SPECIAL, *letters, *(f"##{letter}" for letter in letters)])}


def pair(limit: int) -> tuple[PreTrainedTokenizerFast, openvino.CompiledModel]:
    """A cased tokenizer of BERT and what OpenVINO makes of it."""
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=limit))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), SPECIAL))
    original = PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names)
    return original, openvino.compile_model(convert_tokenizer(original), "CPU")


print(*(f"{name} {version(name)}" for name in ("openvino-tokenizers", "transformers", "tokenizers")), sep=", ")
for limit in (100, 200):
    original, converted = pair(limit)
    for text in (PHRASE[:33], PHRASE[:34], PHRASE, "a" * 100, "a" * 101):
        expected, given = original(text)["input_ids"], converted([text])["input_ids"][0].tolist()
        unknown = [ids[1:-1] == [1] for ids in (expected, given)]
        size = f"{len(text)} letters, {len(text.encode())} bytes"
        print(f"limit {limit}: {size}: {len(expected) - 2} and {len(given) - 2} tokens; unknown: {unknown}")
        assert unknown == [len(text) > limit, len(text.encode()) > 100] and (expected == given or any(unknown))
ids = [converted([text])["input_ids"][0].tolist() for text in (PHRASE, PHRASE[5:])]
print("two phrases in the converted tokenizer:", *ids)
assert ids[0] == ids[1] == [2, 1, 3]
PYTHON
