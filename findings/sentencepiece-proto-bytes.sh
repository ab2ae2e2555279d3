#!/usr/bin/env bash
# SentencePiece: the replacement that its own error message names for "immutable_proto" counts offsets in bytes, where letters were counted.
#
# Expected: 0.2.3 refuses return_type="immutable_proto" and says to use "proto" instead. So "proto" gives the same pieces, each with the same
# begin, end and surface, as 0.2.1 gave for "immutable_proto": text[begin:end] is the surface.
# What happens: begin and end of "proto" are places in UTF-8. In English nothing changes and tests pass; behind the first accented letter
# text[begin:end] is other words, and for long documents in other languages the end lies behind the text. The surface is right. The
# value that counts letters is another new one, "offset_mapping", and encode_as_immutable_proto() is gone without a message.
# Who meets this: whoever highlights or cuts text by tokens of T5, XLM-R, BGE-M3 or multilingual E5, and updates.
# Versions: sentencepiece 0.2.1 and 0.2.3, protobuf 7.36.2. Source: _resolve_return_type of sentencepiece/__init__.py, issue 266 of
# google/sentencepiece (bytes in the serialised form).
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for release in 0.2.1 0.2.3; do
    python3 -m venv "$folder/$release"
    "$folder/$release/bin/pip" install --quiet --disable-pip-version-check sentencepiece==$release protobuf==7.36.2 2>/dev/null
done

cat >"$folder/pieces.py" <<'PYTHON'
import json
import sys

import sentencepiece

MODEL, KIND = sys.argv[1:]
ENGLISH, GERMAN = "The ferry leaves the old harbour", "Die Fähre verläßt den schönen Hafen"
if KIND == "train":
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([ENGLISH, GERMAN] * 50), model_prefix=MODEL, vocab_size=60, hard_vocab_limit=False, minloglevel=2
    )
    sys.exit()
processor, name = sentencepiece.SentencePieceProcessor(model_file=MODEL + ".model"), "out_type"
if not hasattr(processor, "encode_as_immutable_proto"):
    name = "return_type"
try:
    found = {text: processor.encode(text, **{name: KIND}) for text in (ENGLISH, GERMAN)}
    right = {text: all(text[piece.begin : piece.end] == piece.surface for piece in found[text].pieces) for text in found}
    print(json.dumps({"right": list(right.values()), "end": [found[text].pieces[-1].end - len(text) for text in found]}))
except ValueError as error:
    print(json.dumps({"error": str(error)}))
PYTHON
"$folder/0.2.3/bin/python" "$folder/pieces.py" "$folder/model" train
before=$("$folder/0.2.1/bin/python" "$folder/pieces.py" "$folder/model" immutable_proto)
refused=$("$folder/0.2.3/bin/python" "$folder/pieces.py" "$folder/model" immutable_proto)
after=$("$folder/0.2.3/bin/python" "$folder/pieces.py" "$folder/model" proto)
echo "Is text[begin:end] the surface of all pieces, in English and in German; and how far is the last end from that of the text?"
printf '0.2.1, immutable_proto: %s\n0.2.3, immutable_proto: %s\n0.2.3, proto: %s\n' "$before" "$refused" "$after"

[[ $before == '{"right": [true, true], "end": [0, 0]}' ]]
[[ $refused == *"Use return_type='proto' instead"* ]]
[[ $after == '{"right": [true, false], "end": [0, 4]}' ]]
