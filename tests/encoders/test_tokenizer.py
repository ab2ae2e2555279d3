"""Tokenizers read without transformers: equal tokens, and tokenizers left to transformers."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.encoders import tokenizer as tokenizer_module
from engine.encoders.files import bundled_folder
from engine.encoders.tokenizer import Tokenizer
from tests.encoders.tiny import Take, tamper

BERT = {"model_type": "bert"}
read_tokenizer = tokenizer_module._read
TEXTS = [
    "The quick brown fox.",
    "",
    " \n\t",
    "Éclair naïve Ünïcode, 文書 と かな; 12.5% of x_i!",
    "[CLS] is a token, [MASK] and [SEP] too; [PAD][UNK]",
    "a" * 101 + " zero\u200bwidth\u00a0space \ufffd \x00 \x07 👩‍🔬",
    "word " * 600,
]


@pytest.fixture(params=["tiny", "bundled", "as transformers saves it"])
def folder(request: pytest.FixtureRequest, bert_folder: Path, tmp_path: Path) -> Path:
    if request.param == "as transformers saves it":
        Tokenizer(bundled_folder()).fast.save_pretrained(tmp_path)
        tamper(tmp_path / "config.json", **BERT)
        return tmp_path
    return bert_folder if request.param == "tiny" else bundled_folder()


def test_tokens_sizes_and_special_ids_are_those_of_transformers(folder: Path) -> None:
    assert read_tokenizer(folder, BERT) is not None
    tokenizer = Tokenizer(folder)
    want = tokenizer.fast(TEXTS, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
    assert tokenizer.tokenize(TEXTS) == list(zip(want["input_ids"], want["offset_mapping"], strict=True))
    with_special_tokens = tokenizer.fast("a")["input_ids"]
    assert [*tokenizer.prefix, *tokenizer.tokenize(["a"])[0][0], *tokenizer.suffix] == with_special_tokens
    fast = tokenizer.fast
    assert tokenizer.vocabulary_size == len(fast)
    assert tokenizer.max_length == fast.model_max_length
    assert (tokenizer.pad_id, tokenizer.mask_id) == (fast.pad_token_id, fast.mask_token_id)


_BUNDLED = Tokenizer(bundled_folder())


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_tokens_of_any_text_are_those_of_transformers(text: str) -> None:
    want = _BUNDLED.fast(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
    assert _BUNDLED.tokenize([text]) == [(want["input_ids"], want["offset_mapping"])]


@pytest.mark.parametrize(
    ("file", "entry", "value"),
    [
        ("tokenizer_config.json", "tokenizer_class", "Evil"),
        ("tokenizer_config.json", "tokenizer_class", None),
        ("tokenizer_config.json", "do_lower_case", False),
        ("tokenizer_config.json", "strip_accents", True),
        ("tokenizer_config.json", "tokenize_chinese_chars", False),
        ("tokenizer_config.json", "never_split", ["fox"]),
        ("tokenizer_config.json", "split_special_tokens", True),
        ("tokenizer_config.json", "auto_map", {"AutoTokenizer": ["evil.Evil", None]}),
        ("tokenizer_config.json", "extra_special_tokens", ["<fox>"]),
        ("tokenizer_config.json", "mask_token", "fox"),
        ("tokenizer_config.json", "cls_token", {"content": "[CLS]"}),
        ("tokenizer_config.json", "sep_token", "[CLS]"),
        ("tokenizer_config.json", "model_max_length", 0),
        ("tokenizer_config.json", "model_max_length", 1.5),
        ("tokenizer_config.json", "model_max_length", "x"),
        ("tokenizer_config.json", "added_tokens_decoder", {"9": {"content": "<fox>"}}),
        ("added_tokens.json", "<fox>", 92),
        ("special_tokens_map.json", "cls_token", "[SEP]"),
    ],
)
def test_other_settings_and_tokens_are_left_to_transformers(take: Take, file: str, entry: str, value: object) -> None:
    folder = take("backbone")
    tamper(folder / file, **{entry: value})
    assert read_tokenizer(folder, BERT) is None


def _swapped(own: Any) -> Any:  # noqa: ANN401
    return {**own, "cls": own["sep"], "sep": own["cls"]}


@pytest.mark.parametrize(
    ("entry", "change"),
    [
        ("normalizer", lambda own: {**own, "lowercase": False}),
        ("pre_tokenizer", lambda _: {"type": "Whitespace"}),
        ("added_tokens", lambda own: [*own, {**own[0], "id": 20, "content": "fox"}]),
        ("model", lambda own: {**own, "continuing_subword_prefix": "@@"}),
        ("post_processor", lambda _: None),
        ("post_processor", _swapped),
    ],
)
def test_another_tokenizer_is_left_to_transformers(take: Take, entry: str, change: Callable[[Any], Any]) -> None:
    folder = take("backbone")
    assert read_tokenizer(folder, BERT) is not None
    content = json.loads((folder / "tokenizer.json").read_text())
    tamper(folder / "tokenizer.json", **{entry: change(content[entry])})
    assert read_tokenizer(folder, BERT) is None


@pytest.mark.parametrize("description", [{}, {"model_type": "roberta"}])
def test_the_tokenizer_of_another_model_is_left_to_transformers(bert_folder: Path, description: Any) -> None:  # noqa: ANN401
    assert read_tokenizer(bert_folder, description) is None


@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer_config.json"])
@pytest.mark.parametrize("content", [None, b"", b"\xff", b"[]", b"{}"])
def test_a_damaged_or_missing_file_is_left_to_transformers(
    bert_folder: Path, tmp_path: Path, name: str, content: bytes | None
) -> None:
    shutil.copytree(bert_folder, tmp_path, dirs_exist_ok=True)
    (tmp_path / name).unlink()
    if content is not None:
        (tmp_path / name).write_bytes(content)
    assert read_tokenizer(tmp_path, BERT) is None
