"""Fixtures of the core: a random two-layer backbone on disk, a small corpus, indexes over it."""

from __future__ import annotations

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # read when huggingface_hub is imported
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from engine.document import Document
from tests.fakes import FakeEncoder, make_corpus

if TYPE_CHECKING:
    from engine.encoders.mean import MeanEncoder
    from engine.index import Index

_WORDS = (
    "the a of and in we is was old young fox dog river house bank light dark model vector search long document "
    "section chunk query target score finds shows every some many few runs jumps over under through quick slow "
    "brown lazy left right red green one two three four five six seven eight nine ten"
).split()
_PIECES = [
    *"abcdefghijklmnopqrstuvwxyz0123456789.,!?;:'\"()[]-",
    *(f"##{c}" for c in "abcdefghijklmnopqrstuvwxyz0123456789"),
]


def save_random_bert(folder: Path, *, seed: int = 0) -> Path:
    """A BERT of two layers 32 wide with a lower-casing WordPiece tokenizer, as transformers saves them."""
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocabulary = {token: number for number, token in enumerate([*special, *_WORDS, *dict.fromkeys(_PIECES)])}
    vocabulary = {token: number for number, token in enumerate(vocabulary)}
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
        max_position_embeddings=48,
        initializer_range=0.5,  # at the usual 0.02 all texts are nearly alike
    )
    BertModel(config).save_pretrained(folder)
    fast.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def bert_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_random_bert(tmp_path_factory.mktemp("encoders") / "bert")


@pytest.fixture(scope="session")
def other_bert_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_random_bert(tmp_path_factory.mktemp("encoders") / "other", seed=1)


@pytest.fixture(scope="session")
def mean_encoder(bert_folder: Path) -> MeanEncoder:
    import torch

    from engine.encoders.backbone import Backbone
    from engine.encoders.mean import MeanEncoder

    return MeanEncoder(Backbone(bert_folder, device="cpu", dtype=torch.float32), window_tokens=12)


@pytest.fixture
def encoder() -> FakeEncoder:
    return FakeEncoder()


@pytest.fixture(scope="session")
def corpus() -> list[Document]:
    return make_corpus(60)


@pytest.fixture(scope="session")
def built_folder(tmp_path_factory: pytest.TempPathFactory, corpus: list[Document]) -> Path:
    """An index over `corpus` with a Flat generation, only to be read."""
    from indexer.builder import build

    folder = tmp_path_factory.mktemp("built") / "corpus.lm"
    build(folder, corpus, encoder=FakeEncoder(), factory="Flat")
    return folder


@pytest.fixture
def index(built_folder: Path) -> Iterator[Index]:
    from engine.index import Index

    with Index.open(built_folder, encoder=FakeEncoder()) as opened:
        yield opened


@pytest.fixture
def flip_byte() -> Callable[[Path, int], None]:
    """Invert one byte of a file."""

    def flip(path: Path, at: int) -> None:
        content = bytearray(path.read_bytes())
        content[at] ^= 0xFF
        path.write_bytes(content)

    return flip
