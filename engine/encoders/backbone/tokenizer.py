"""Text to token ids and character offsets, and ids to a padded batch; no parameters here."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from engine.encoders.backbone.model_folder import load_fast_tokenizer, load_tokenizer
from engine.errors import EncoderError


class Tokenizer:
    """A tokenizer of the tokenizers library that reads whole texts and truncates nothing."""

    def __init__(self, folder: Path) -> None:
        """Load from a folder.

        Raises:
            EncoderError: the folder holds no tokenizer that gives offsets.
        """
        self.folder = folder
        self._loaded, self.prefix, self.suffix = load_tokenizer(folder)

    @cached_property
    def fast(self) -> Any:  # noqa: ANN401
        """This tokenizer as a fast tokenizer of transformers, loaded for callers that need one."""
        return load_fast_tokenizer(self.folder)

    def check_ids(self, n_words: int) -> None:
        """Check that a model knows all tokens that are put around a text, and the padding token.

        Args:
            n_words: rows of its word embeddings.

        Raises:
            EncoderError: the model does not know one of them.
        """
        highest = max(*self.prefix, *self.suffix, self.pad_id, 0)
        if highest >= n_words:
            raise EncoderError(
                f"the tokenizer of {self.folder} puts token {highest} around a text, its model knows {n_words}; "
                "take tokenizer and model from one folder"
            )

    @property
    def n_special(self) -> int:
        """The number of tokens that are put around a sequence, such as [CLS] and [SEP]."""
        return len(self.prefix) + len(self.suffix)

    @property
    def max_length(self) -> int:
        """Most tokens of a sequence according to the tokenizer, special ones counted; may be huge."""
        return self._loaded.max_length

    @property
    def vocabulary_size(self) -> int:
        """Ids run from 0 to this, exclusive."""
        return int(self._loaded.tokenizer.get_vocab_size())

    @property
    def pad_id(self) -> int:
        """The id that pads a batch; 0 where the tokenizer has none."""
        return self._loaded.pad_id or 0

    @property
    def mask_id(self) -> int:
        """The id of [MASK].

        Raises:
            EncoderError: the tokenizer has none.
        """
        if self._loaded.mask_id is None:
            raise EncoderError(f"the tokenizer of {self.folder} has no mask token; pretrain without masked words")
        return self._loaded.mask_id

    def tokenize(self, texts: Sequence[str]) -> list[tuple[list[int], list[tuple[int, int]]]]:
        """Token ids and character offsets of each whole text, without special tokens."""
        if not texts:
            return []
        found = self._loaded.tokenizer.encode_batch(list(texts), add_special_tokens=False)
        return [(own.ids, own.offsets) for own in found]

    def pad(self, sequences: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        """Put special tokens around sequences, and pad them to the longest.

        Returns:
            (N, L) int64 ids, and (N, L) bool, True where a token is real.
        """
        full = [[*self.prefix, *sequence, *self.suffix] for sequence in sequences]
        longest = max(len(sequence) for sequence in full)
        ids = np.full((len(full), longest), self.pad_id, np.int64)
        mask = np.zeros((len(full), longest), np.bool_)
        for row, sequence in enumerate(full):
            ids[row, : len(sequence)] = sequence
            mask[row, : len(sequence)] = True
        return torch.from_numpy(ids), torch.from_numpy(mask)

    def save_pretrained(self, folder: Path) -> None:
        """Copy the tokenizer's files, byte for byte."""
        folder.mkdir(parents=True, exist_ok=True)
        names = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")
        for name in (*names, "vocab.txt", "vocab.json", "merges.txt"):
            if (self.folder / name).exists() and self.folder != folder:
                (folder / name).write_bytes((self.folder / name).read_bytes())
        for file in sorted(self.folder.glob("*.model")):
            (folder / file.name).write_bytes(file.read_bytes())
