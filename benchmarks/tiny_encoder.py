"""A random BERT small enough to encode a corpus in seconds, in transformers' format; for cost, not for quality."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

_CHARACTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
_PIECES = (*_CHARACTERS, *".,!?;:'\"()[]-", *(f"##{character}" for character in _CHARACTERS))
_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_WORD = re.compile(r"[a-z]+")


def frequent_words(texts: Iterable[str], n: int = 4000) -> list[str]:
    """The most frequent words of texts, the most frequent first, ties by name."""
    counts = Counter(word for text in texts for word in _WORD.findall(text.lower()))
    return sorted(counts, key=lambda word: (-counts[word], word))[:n]


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


def tiny_encoder(corpus: Path, work: Path, seed: int) -> Path:
    """A random encoder with the words of a corpus as its vocabulary, in a folder of `work`."""
    from engine.text.document import Document
    from indexer import read_corpus

    texts = [document.text for document in read_corpus([str(corpus)]) if isinstance(document, Document)]
    return save_tiny_bert(work / "encoder", frequent_words(texts), seed=seed)
