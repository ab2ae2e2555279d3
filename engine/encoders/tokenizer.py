"""Text to token ids and offsets, documents to chunks of whole sentences, ids to padded batches; no parameters.

The tokenizer of a BERT or a RoBERTa is read from its tokenizer.json; transformers, whose import takes longer than a
query, reads any other, and those for which it might make other tokens than the file describes.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import tokenizers
from numpy.typing import NDArray

from engine.encoders.encoder import SegmentedDocument
from engine.encoders.files import load_fast_tokenizer, naming_folder, parse_json, read_config, tokenizer_sha256
from engine.errors import DocumentError, EncoderError
from engine.text.document import Document
from engine.text.segmentation import Chunk, Coverage, TokenWindow, fill_windows, sentence_starts

if TYPE_CHECKING:
    from torch import Tensor

# Entries of tokenizer_config.json that transformers applies to the normalizer of a BERT: name there, and default.
_NORMALIZER = {
    "do_lower_case": ("lowercase", True),
    "strip_accents": ("strip_accents", None),
    "tokenize_chinese_chars": ("handle_chinese_chars", True),
}
_CLASSES = (
    *("BertTokenizer", "BertTokenizerFast", "RobertaTokenizer", "RobertaTokenizerFast"),
    *("PreTrainedTokenizerFast", "TokenizersBackend"),
)
_SPECIAL_TOKENS = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token", "bos_token", "eos_token")
# Entries of tokenizer_config.json that change tokens unless they are empty.
_CHANGING = ("auto_map", "split_special_tokens", "never_split", "extra_special_tokens", "additional_special_tokens")
_BERT_WORDS = {"type": "BertPreTokenizer"}
_BYTES = {"type": "ByteLevel", "trim_offsets": True, "use_regex": True}
_WORD_PIECE = {"type": "WordPiece", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100}
Windows = Callable[[Sequence[int]], Sequence[TokenWindow]]


class Tokenizer:
    """A tokenizer of the tokenizers library that reads whole texts and truncates nothing."""

    def __init__(self, folder: Path) -> None:
        """Load from a folder."""
        self.folder = folder
        with naming_folder(folder):
            self._loaded = loaded = _read(folder, read_config(folder)) or _of_transformers(folder)
            bare, dressed = (loaded.ids("a", with_special=special) for special in (False, True))
            if not bare or bare[0] not in dressed:
                raise ValueError(f"its tokenizer makes {bare} of 'a', and {dressed} with special tokens around it")
            at = dressed.index(bare[0])
            self.prefix, self.suffix = dressed[:at], dressed[at + len(bare) :]
        self.sha256 = tokenizer_sha256(folder)

    @cached_property
    def fast(self) -> Any:  # noqa: ANN401
        """This tokenizer as a fast tokenizer of transformers, loaded for callers that need one."""
        return load_fast_tokenizer(self.folder)

    def check_ids(self, n_words: int) -> None:
        """Check that a model with `n_words` words knows the padding and all special tokens around a text."""
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
        """The id of [MASK]."""
        if self._loaded.mask_id is None:
            raise EncoderError(f"the tokenizer of {self.folder} has no mask token; pretrain without masked words")
        return self._loaded.mask_id

    def tokenize(self, texts: Sequence[str]) -> list[tuple[list[int], list[tuple[int, int]]]]:
        """Token ids and character offsets of each whole text, without special tokens."""
        if not texts:
            return []
        encodings = self._loaded.tokenizer.encode_batch(list(texts), add_special_tokens=False)
        return [(encoding.ids, encoding.offsets) for encoding in encodings]

    def pad(self, sequences: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        """As `pad_arrays`, padded to the longest: (N, L) int64 ids, and (N, L) bool mask, for torch."""
        import torch

        ids, mask = self.pad_arrays(sequences, 0)
        return torch.from_numpy(ids), torch.from_numpy(mask)

    def pad_arrays(
        self, sequences: Sequence[Sequence[int]], length: int
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Put special tokens around sequences: (N, L) ids, at least as wide as a length, and mask, True where real."""
        full = [[*self.prefix, *sequence, *self.suffix] for sequence in sequences]
        lengths = np.array([len(sequence) for sequence in full])
        mask = np.arange(max(length, *lengths)) < lengths[:, None]
        ids = np.full(mask.shape, self.pad_id, np.int64)
        ids[mask] = np.fromiter(chain.from_iterable(full), np.int64, int(lengths.sum()))
        return ids, mask

    def save_pretrained(self, folder: Path) -> None:
        """Copy the tokenizer's files, byte for byte."""
        folder.mkdir(parents=True, exist_ok=True)
        names = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")
        for name in (*names, "vocab.txt", "vocab.json", "merges.txt"):
            if (self.folder / name).exists() and self.folder != folder:
                (folder / name).write_bytes((self.folder / name).read_bytes())
        for file in sorted(self.folder.glob("*.model")):
            (folder / file.name).write_bytes(file.read_bytes())


class _Loaded(NamedTuple):
    """A tokenizer of the tokenizers library, with the numbers that it does not hold."""

    tokenizer: tokenizers.Tokenizer
    max_length: int  # most tokens of a sequence, special ones counted; may be huge
    pad_id: int | None
    mask_id: int | None

    def ids(self, text: str, *, with_special: bool) -> list[int]:
        """Token ids of a text, with or without the special tokens around it."""
        ids: list[int] = self.tokenizer.encode(text, add_special_tokens=with_special).ids
        return ids


def _of_transformers(folder: Path) -> _Loaded:
    fast = load_fast_tokenizer(folder)
    tokenizer = _unlimited(fast.backend_tokenizer)
    return _Loaded(tokenizer, int(fast.model_max_length), fast.pad_token_id, fast.mask_token_id)


def _unlimited(tokenizer: tokenizers.Tokenizer) -> tokenizers.Tokenizer:
    """Switch off truncation and padding, which the file of a tokenizer can switch on."""
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _read(folder: Path, config: Mapping[str, Any]) -> _Loaded | None:
    """The tokenizer of tokenizer.json; None where transformers might make other tokens, or where a file is damaged."""
    is_bert = config.get("model_type") == "bert"
    if not is_bert and config.get("model_type") != "roberta":
        return None
    try:
        settings, content = (parse_json(folder / name) for name in ("tokenizer_config.json", "tokenizer.json"))
        max_length = settings["model_max_length"]
        if type(max_length) is not int or max_length < 1 or not _is_usual(folder, settings, content, is_bert):
            return None
        tokenizer = _unlimited(tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json")))
        first, last = ("cls_token", "sep_token") if is_bert else ("bos_token", "eos_token")
        names = ("pad_token", "mask_token", first, last)
        pad_id, mask_id, first_id, last_id = (tokenizer.token_to_id(settings[name]) for name in names)
        loaded = _Loaded(tokenizer, max_length, pad_id, mask_id)
        has_both = loaded.ids("a", with_special=True) == [first_id, *loaded.ids("a", with_special=False), last_id]
        return loaded if has_both else None
    except Exception:  # noqa: BLE001 - tokenizers raises nothing narrower, and transformers reports the fault
        return None


def _is_usual(folder: Path, settings: Mapping[str, Any], content: Mapping[str, Any], is_bert: bool) -> bool:
    """Whether every class that transformers can choose makes the tokens that tokenizer.json describes."""
    model = {name: value for name, value in content["model"].items() if name not in ("vocab", "merges")}
    special = {value for name, value in settings.items() if name in _SPECIAL_TOKENS and value is not None}
    added = {(token["id"], token["content"]) for token in content["added_tokens"]}
    named = {(int(number), token["content"]) for number, token in settings.get("added_tokens_decoder", {}).items()}
    mapped = folder / "special_tokens_map.json"
    prefix = settings.get("add_prefix_space", False)
    flags = {there: settings.get(name, default) for name, (there, default) in _NORMALIZER.items()}
    return (
        settings["tokenizer_class"] in _CLASSES
        and not any(settings.get(name) for name in _CHANGING)
        and {text for _, text in added} == special
        and named <= added
        and not (folder / "added_tokens.json").exists()
        and (not mapped.exists() or parse_json(mapped).items() <= settings.items())
        and content["normalizer"] == ({"type": "BertNormalizer", "clean_text": True, **flags} if is_bert else None)
        and content["pre_tokenizer"] == (_BERT_WORDS if is_bert else {**_BYTES, "add_prefix_space": prefix})
        and (not is_bert or model == {**_WORD_PIECE, "unk_token": settings["unk_token"]})
    )


def chunk_document(
    document: Document, tokenizer: Tokenizer, windows: int | Windows, title_tokens: int = 0
) -> SegmentedDocument:
    """Cut each section of a document into windows of tokens; tokens in no window count as not read.

    Args:
        windows: most tokens of a window, filled with whole sentences so that every token is in one window; or a
            function from the sentence ends of a section (counts of tokens, rising) to its windows.
        title_tokens: most tokens of the title, see `Document.own_title`; 0 for an encoder that does not read it.
    """
    cut: Windows = windows if callable(windows) else (lambda ends: fill_windows(ends, windows))
    texts = [document.text[section.start : section.stop] for section in document.sections]
    chunks: list[Chunk] = []
    token_ids: list[Sequence[int]] = []
    n_tokens = 0
    (title_ids, _), *tokenized = tokenizer.tokenize([document.own_title if title_tokens else "", *texts])
    for number, (ids, offsets) in enumerate(tokenized):
        n_tokens += len(ids)
        base = document.sections[number].start
        for window in cut(sentence_ends(texts[number], offsets)):
            start, stop = offsets[window.first][0], offsets[window.stop - 1][1]
            chunks.append(Chunk(number, base + start, base + stop, window.stop - window.first))
            token_ids.append(array("i", ids[window.first : window.stop]))  # a tenth of the memory of a tuple
    if not chunks:
        raise DocumentError(f"{document.doc_id}: no text that the tokenizer can read")
    read = sum(chunk.n_tokens for chunk in chunks)
    title = array("i", title_ids[:title_tokens])
    return SegmentedDocument(document, tuple(chunks), tuple(token_ids), Coverage(read, n_tokens), title)


def sentence_ends(text: str, offsets: Sequence[tuple[int, int]]) -> list[int]:
    """Count of tokens before the end of each sentence; the last count is that of all tokens."""
    token_starts = [start for start, _ in offsets]
    ends = {bisect_left(token_starts, start) for start in sentence_starts(text)[1:]}
    ends.add(len(token_starts))
    return sorted(ends - {0})
