from __future__ import annotations

from dataclasses import replace

from benchmarks.peers.chunker import Chunker
from benchmarks.peers.peer import PeerConfig
from engine.encoders.backbone.tokenizer import Tokenizer


def n_tokens(config: PeerConfig, text: str) -> int:
    ((ids, _),) = Tokenizer(config.backbone).tokenize([text])
    return len(ids)


def test_chunks_lie_one_after_another_and_all_but_the_last_are_full(config: PeerConfig) -> None:
    text = " ".join(["dog", "fox.", "house"] * 15)
    chunks = Chunker(replace(config, window_tokens=11)).cut(text)
    assert " ".join(chunks).replace(" ", "") == text.replace(" ", "")
    tokens = [n_tokens(config, chunk) for chunk in chunks]
    assert set(tokens[:-1]) == {9}  # 11 with [CLS] and [SEP]
    assert 0 < tokens[-1] <= 9


def test_no_word_is_cut_in_two(config: PeerConfig) -> None:
    text = " ".join(["xylophone", "dog"] * 6)  # nine pieces, and one
    chunks = Chunker(replace(config, window_tokens=14)).cut(text)
    assert chunks == ["xylophone dog"] * 6
    assert sum(n_tokens(config, chunk) for chunk in chunks) == n_tokens(config, text)


def test_but_one_that_is_longer_than_a_window(config: PeerConfig) -> None:
    assert Chunker(replace(config, window_tokens=5)).cut("qqqqqqqq") == ["qqq", "qqq", "qq"]


def test_a_chunk_is_no_longer_than_the_backbone_reads(config: PeerConfig) -> None:
    assert Chunker(replace(config, window_tokens=4096)).max_tokens == 48
    assert Chunker(replace(config, window_tokens=16)).max_tokens == 16


def test_a_text_without_a_token_is_one_chunk(config: PeerConfig) -> None:
    assert Chunker(config).cut("") == [""]
    assert Chunker(config).cut("a dog") == ["a dog"]
