#!/usr/bin/env bash
# Chonkie: start_index of a token chunk is one more off with each letter that a cut divides, and "Bürger" is in no chunk; word chunks are off too.
#
# Expected: chunks have start_index and end_index, and text[start_index:end_index] is the text of the chunk, as it is for sentence chunks
# and by characters. Without overlap the chunks together are the text.
# What happens: TokenChunker decodes each group of tokens by itself and adds up the lengths. Byte-level tokenizers (GPT-2, Llama, Qwen, ModernBERT)
# divide rare letters into bytes; a cut between them makes "B\ufffd" and "\ufffdrger", two characters of one, so that the word is lost and all
# later places are one further. RecursiveChunker does the same where it comes down to tokens, as in Chinese. With tokenizer="word" the blanks
# between chunks are lost, and each place is one less than the last one, in English. With an overlap chunks of words are right again.
# Who meets this: whoever shows or marks a chunk in its document: 200 chunks later the mark is a line away, and tests on the first chunk pass.
# Versions: chonkie 1.7.0, tokenizers 0.23.3. Source: issue 629 of feyninc/chonkie (open) for letters; none found for tokenizer="word".
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check chonkie==1.7.0 tokenizers==0.23.3 2>/dev/null

"$folder/venv/bin/python" - 2>/dev/null <<'PYTHON'
from importlib.metadata import version

from chonkie import RecursiveChunker, SentenceChunker, TokenChunker
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

GERMAN = "Die Bürger üben für Fähren. " * 40
ENGLISH = "The ferry crosses the river every hour. " * 40
CHINESE = "法院认为合同有效并驳回上诉" * 20


def byte_level() -> Tokenizer:
    """A tokenizer of single bytes, as byte-level ones are for letters that they have not learned."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({letter: number for number, letter in enumerate(letters)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def drift(name: str, chunker, text: str) -> list[int]:
    """How far start_index is from the true start of each chunk, where chunks follow one another."""
    chunks = chunker.chunk(text)
    true, places = 0, []
    for chunk in chunks:
        known = chunk.text.strip("\ufffd")
        found = text.find(known, max(0, true - 2))
        places.append(chunk.start_index + chunk.text.find(known) - found)
        true = found + len(known)
    whole = sum(chunk.text == text[chunk.start_index : chunk.end_index] for chunk in chunks)
    broken = sum("\ufffd" in chunk.text for chunk in chunks)
    print(f"{name}: {len(chunks)} chunks, {whole} where the text has them, {broken} with half a letter, last one off by {places[-1]}")
    return places


print(*(f"{name} {version(name)}" for name in ("chonkie", "tokenizers")), sep=", ")
tokens = byte_level()
for tokenizer in ("character", "word", tokens):
    assert set(drift(f"sentences, {type(tokenizer).__name__}", SentenceChunker(tokenizer, 60, 0), GERMAN)) == {0}
assert set(drift("characters", TokenChunker("character", 31, 0), GERMAN)) == {0}
assert set(drift("tokens, English", TokenChunker(tokens, 31, 0), ENGLISH)) == {0}
german = drift("tokens, German", TokenChunker(tokens, 31, 0), GERMAN)
assert german[-1] > 3 and german == sorted(german)
chinese = drift("recursive, Chinese", RecursiveChunker(tokens, 40), CHINESE)
assert chinese[-1] > 3 and chinese == sorted(chinese)
words = drift("words, English", TokenChunker("word", 31, 0), ENGLISH)
assert words[-1] < -3 and words == sorted(words, reverse=True)
PYTHON
