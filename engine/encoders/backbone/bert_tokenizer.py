"""The tokenizer of a plain BERT, read without transformers, whose import takes longer than a query.

It reads only files for which the result is certain to equal that of transformers. Other files, and damaged ones, are
left to transformers, which reports the fault.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import tokenizers

from engine.encoders.files import parse_json

_TOKENIZER_CLASSES = ("BertTokenizer", "BertTokenizerFast", "PreTrainedTokenizerFast", "TokenizersBackend")
_SPECIAL_TOKENS = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
# Entries of tokenizer_config.json that change tokens, with their defaults; tokenizer.json must agree.
_NORMALIZER = {"tokenize_chinese_chars": True, "strip_accents": None, "do_lower_case": True}
_EMPTY = (
    "never_split",
    "extra_special_tokens",
    "additional_special_tokens",
)  # change tokens unless they are empty
# Entries of tokenizer_config.json that do not change the tokens of a text that is not truncated.
_HARMLESS = (
    "backend",
    "clean_up_tokenization_spaces",
    "do_basic_tokenize",
    "is_local",
    "local_files_only",
    "max_length",
    "model_max_length",
    "name_or_path",
    "pad_to_multiple_of",
    "pad_token_type_id",
    "padding_side",
    "stride",
    "tokenizer_class",
    "truncation_side",
    "truncation_strategy",
)


@dataclass(frozen=True, slots=True)
class LoadedTokenizer:
    """A tokenizer of the tokenizers library that neither truncates nor pads, with the numbers that it does not hold."""

    tokenizer: tokenizers.Tokenizer
    max_length: int  # most tokens of a sequence, special ones counted; may be huge
    pad_id: int | None
    mask_id: int | None

    @classmethod
    def of(cls, tokenizer: tokenizers.Tokenizer, max_length: int, pad_id: int | None, mask_id: int | None) -> Self:
        """Wrap a tokenizer, and switch off truncation and padding, which its file can switch on."""
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return cls(tokenizer, max_length, pad_id, mask_id)

    def ids(self, text: str, *, with_special: bool) -> list[int]:
        """Token ids of a text, with or without the special tokens around it."""
        found: list[int] = self.tokenizer.encode(text, add_special_tokens=with_special).ids
        return found


def read_tokenizer(folder: Path, description: Mapping[str, Any]) -> LoadedTokenizer | None:
    """Read the tokenizer of a BERT.

    Args:
        folder: with tokenizer.json and tokenizer_config.json.
        description: its config.json.

    Returns:
        The tokenizer; None where transformers might make other tokens than tokenizer.json describes.
    """
    try:
        settings, content = (parse_json(folder / name) for name in ("tokenizer_config.json", "tokenizer.json"))
        if description["model_type"] != "bert" or not _is_usual(folder, settings, content):
            return None
        tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    except Exception:  # noqa: BLE001 - tokenizers raises nothing narrower, and transformers reports the fault
        return None
    pad_id, mask_id, cls_id, sep_id = (
        tokenizer.token_to_id(settings[name]) for name in ("pad_token", "mask_token", "cls_token", "sep_token")
    )
    loaded = LoadedTokenizer.of(tokenizer, settings["model_max_length"], pad_id, mask_id)
    has_both = loaded.ids("a", with_special=True) == [cls_id, *loaded.ids("a", with_special=False), sep_id]
    return loaded if has_both else None


def _is_usual(folder: Path, settings: Mapping[str, Any], content: Mapping[str, Any]) -> bool:
    """Whether every class that transformers can choose for a BERT makes the same tokens from both files."""
    special = [settings[name] for name in _SPECIAL_TOKENS]
    model = dict(content["model"])
    vocabulary = model.pop("vocab")
    flags = {"special": True, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    added = [{"id": vocabulary[token], "content": token, **flags} for token in special]
    chinese, accents, lower = (settings.get(name, default) for name, default in _NORMALIZER.items())
    max_length = settings["model_max_length"]
    return (
        settings["tokenizer_class"] in _TOKENIZER_CLASSES
        and settings.keys() <= {*_HARMLESS, *_SPECIAL_TOKENS, *_NORMALIZER, *_EMPTY, "added_tokens_decoder"}
        and not any(settings.get(name) for name in _EMPTY)
        and type(max_length) is int
        and max_length >= 1
        and _in_order(content["added_tokens"]) == _in_order(added)
        and _in_order(_decoder(settings)) in ([], _in_order(added))
        and not (folder / "added_tokens.json").exists()
        and _special_tokens_map(folder).items() <= settings.items()
        and content["normalizer"]
        == {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": chinese,
            "strip_accents": accents,
            "lowercase": lower,
        }
        and content["pre_tokenizer"] == {"type": "BertPreTokenizer"}
        and model
        == {
            "type": "WordPiece",
            "unk_token": settings["unk_token"],
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
        }
    )


def _in_order(added_tokens: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return sorted(added_tokens, key=lambda token: int(token["id"]))


def _decoder(settings: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The added tokens of tokenizer_config.json, as tokenizer.json lists them."""
    return [{"id": int(number), **token} for number, token in settings.get("added_tokens_decoder", {}).items()]


def _special_tokens_map(folder: Path) -> dict[str, Any]:
    file = folder / "special_tokens_map.json"
    found: dict[str, Any] = parse_json(file) if file.exists() else {}
    return found
