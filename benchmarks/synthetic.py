"""Seeded texts with the lengths of real documents; for scale, not for quality."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engine.text.document import Document
from engine.text.segmentation import Section

_N_WORDS = 5000
_WORDS_PER_SENTENCE = 18


@dataclass(frozen=True)
class Lengths:
    """Lengths of documents in words: log-normal, like those of news posts and of specifications."""

    name: str
    median_words: int
    spread: float  # standard deviation of the logarithm
    words_per_section: int


SHORT = Lengths("short", median_words=150, spread=0.7, words_per_section=200)
LONG = Lengths("long", median_words=3000, spread=0.6, words_per_section=300)


def vocabulary(seed: int = 0) -> list[str]:
    """Words of 2 to 10 letters, without repetition."""
    rng = np.random.default_rng(seed)
    letters = np.array(list("etaoinshrdlucmfwypvbgk"))
    words: dict[str, None] = {}
    while len(words) < _N_WORDS:
        words["".join(rng.choice(letters, int(rng.integers(2, 11))))] = None
    return list(words)


def documents(lengths: Lengths, n: int, seed: int = 0) -> Iterator[Document]:
    """A stream of documents, one in memory at a time; the same for the same seed."""
    words = np.array(vocabulary(seed))
    # Zipf's law: the r-th word has a frequency of about 1 / r.
    shares = 1 / np.arange(1, _N_WORDS + 1)
    limits = np.cumsum(shares / shares.sum())
    rng = np.random.default_rng([seed, lengths.median_words])
    for number in range(n):
        n_words = max(20, int(lengths.median_words * np.exp(lengths.spread * rng.standard_normal())))
        drawn = words[np.minimum(np.searchsorted(limits, rng.random(n_words)), _N_WORDS - 1)]
        yield _document(f"{lengths.name}-{number:06d}", drawn, lengths.words_per_section)


def _document(doc_id: str, words: NDArray[np.str_], words_per_section: int) -> Document:
    text, sections = "", []
    for part, first in enumerate(range(0, len(words), words_per_section), start=1):
        heading, start = f"Part {part}", len(text)
        text += f"{heading}\n{_sentences(words[first : first + words_per_section].tolist())}\n\n"
        sections.append(Section(heading, (heading,), start, len(text)))
    return Document(doc_id, doc_id, text, tuple(sections), {"words": len(words)}, f"{doc_id}.txt")


def _sentences(words: Sequence[str]) -> str:
    cut = [words[first : first + _WORDS_PER_SENTENCE] for first in range(0, len(words), _WORDS_PER_SENTENCE)]
    return " ".join(" ".join(sentence).capitalize() + "." for sentence in cut)


_CHARACTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
_PIECES = (*_CHARACTERS, *".,!?;:'\"()[]-", *(f"##{character}" for character in _CHARACTERS))
_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def save_tiny_bert(folder: Path, words: Sequence[str], *, seed: int = 0, max_tokens: int = 46) -> Path:
    """Write a BERT of two layers, 32 wide, with a lower-casing WordPiece tokenizer, for `load_encoder`.

    Its vocabulary is `words` and single characters; `max_tokens` of a chunk do not count special tokens.
    """
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    vocabulary = {token: number for number, token in enumerate(dict.fromkeys([*_SPECIAL, *words, *_PIECES]))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", vocabulary["[SEP]"]), ("[CLS]", vocabulary["[CLS]"]))
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    )
    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=max_tokens + 2,
        initializer_range=0.5,  # at the usual 0.02 all texts are nearly alike
    )
    BertModel(config).save_pretrained(folder)
    fast.save_pretrained(folder)
    return folder
