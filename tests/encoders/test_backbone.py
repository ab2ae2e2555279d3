"""Backbones of every kind: loading, padding, positions, gradients; vectors are compared with the plain forward pass."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from torch import Tensor
from transformers import AutoModel, BertForMaskedLM

from engine.encoders.backbone import Backbone, BigBirdAttention
from engine.encoders.encoder import Pooling
from engine.encoders.loading import load_trainable
from engine.encoders.trainable import MeanEncoder
from engine.errors import EncoderError
from tests.encoders.tiny import encoded
from tests.fakes import make_document


@pytest.fixture(scope="module")
def backbone(bert_folder: Path) -> Backbone:
    return Backbone(bert_folder, device="cpu", dtype=torch.float32)


def test_a_vector_is_the_unit_mean_of_the_hidden_states(backbone: Backbone, bert_folder: Path) -> None:
    ids = backbone.tokenizer.tokenize(["the quick brown fox"])[0][0]
    full = torch.tensor([[*backbone.tokenizer.prefix, *ids, *backbone.tokenizer.suffix]])
    with torch.inference_mode():
        mean = AutoModel.from_pretrained(bert_folder).eval()(full)[0][0].mean(0)
    np.testing.assert_allclose(encoded(backbone, [ids], 64)[0], (mean / mean.norm()).numpy(), atol=1e-6)
    assert encoded(backbone, [], 64).shape == (0, 32)
    assert backbone.tokenizer.tokenize([]) == []


def test_offsets_point_at_the_words_whatever_stands_between(backbone: Backbone) -> None:
    text = "  Old\u00a0 FOX\n\nriver."
    _, offsets = backbone.tokenizer.tokenize([text])[0]
    assert [text[start:stop] for start, stop in offsets] == ["Old", "FOX", "river", "."]


def test_a_folder_without_safetensors_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EncoderError) as raised:
        Backbone(tmp_path)
    assert str(raised.value) == (
        f"{tmp_path} holds no *.safetensors; other weight formats are not read: convert them first"
    )


def _copy(bert_folder: Path, folder: Path) -> Path:
    for file in bert_folder.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    return folder


@pytest.mark.parametrize("file", ["model.safetensors", "tokenizer.json", "config.json"])
@pytest.mark.parametrize("content", [b"", b"\xff\x00 garbage", b"{}"])
def test_a_damaged_file_is_an_encoder_error(bert_folder: Path, tmp_path: Path, file: str, content: bytes) -> None:
    (_copy(bert_folder, tmp_path) / file).write_bytes(content)
    with pytest.raises(EncoderError, match="cannot be loaded as an encoder backbone"):
        Backbone(tmp_path, device="cpu", dtype=torch.float32)


def test_a_masked_language_model_is_read_without_its_head(
    backbone: Backbone, bert_folder: Path, tmp_path: Path
) -> None:
    model = BertForMaskedLM(backbone.model.config)
    model.bert.load_state_dict(backbone.model.state_dict(), strict=False)  # it has no pooler
    backbone.tokenizer.save_pretrained(tmp_path)
    model.save_pretrained(tmp_path)
    ids = backbone.tokenizer.tokenize(["the old fox"])[0][0]
    found = encoded(Backbone(tmp_path, device="cpu", dtype=torch.float32), [ids], 64)
    np.testing.assert_array_equal(found, encoded(backbone, [ids], 64))


def test_rounding_leaves_buffers_alone(bert_folder: Path) -> None:
    rounded = Backbone(bert_folder, device="cpu", dtype=torch.float32)
    rounded.model.register_buffer("frequencies", torch.ones(2))
    rounded.round_to(torch.bfloat16)
    assert {weight.dtype for weight in rounded.model.parameters()} == {torch.bfloat16} == {rounded.dtype}
    assert rounded.model.frequencies.dtype is torch.float32
    assert rounded.loaded.are_in(rounded.model)


SMALL = {
    "vocab_size": 300,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "initializer_range": 0.5,
    "pad_token_id": 0,
}
# Class of transformers, its own settings, and the tokens it can read beside two special ones.
KINDS: dict[str, tuple[str, dict[str, Any], int]] = {
    "longformer": ("Longformer", {"attention_window": 8, "max_position_embeddings": 65}, 62),
    "bigbird": ("BigBird", {"block_size": 4, "num_random_blocks": 1, "max_position_embeddings": 66}, 62),
    "bigbird full": ("BigBird", {"attention_type": "original_full", "max_position_embeddings": 66}, 64),
    "bigbird short": ("BigBird", {"block_size": 16, "num_random_blocks": 3, "max_position_embeddings": 66}, 64),
    "modernbert": (
        "ModernBert",
        {"local_attention": 8, "global_attn_every_n_layers": 2, "max_position_embeddings": 128},
        126,
    ),
    "roberta": ("Roberta", {"max_position_embeddings": 51, "pad_token_id": 0}, 48),
    "roberta, padding id 1": ("Roberta", {"max_position_embeddings": 50, "pad_token_id": 1}, 46),
    "distilbert": ("DistilBert", {"max_position_embeddings": 48}, 46),
}
LONG = ["longformer", "bigbird", "modernbert"]
Make = Callable[..., Backbone]


@pytest.fixture(scope="module")
def make(bert_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Make:
    """A backbone of a kind, over the tokenizer of the tests."""
    folders: dict[str, Path] = {}

    def made(kind: str, **settings: Any) -> Backbone:  # noqa: ANN401
        if kind not in folders:
            name, own, _ = KINDS[kind]
            folder = tmp_path_factory.mktemp("backbones")
            for file in bert_folder.glob("*token*"):
                (folder / file.name).write_bytes(file.read_bytes())
            torch.manual_seed(0)
            config = getattr(transformers, f"{name}Config")(**{**SMALL, **own})
            getattr(transformers, f"{name}Model")(config).save_pretrained(folder)
            folders[kind] = folder
        return Backbone(folders[kind], device="cpu", dtype=torch.float32, **settings)

    return made


def sequences(*lengths: int) -> list[list[int]]:
    rng = np.random.default_rng(0)
    return [rng.integers(5, 100, length).tolist() for length in lengths]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_max_tokens_is_what_can_be_read(make: Make, kind: str) -> None:
    backbone = make(kind)
    assert backbone.max_tokens == KINDS[kind][2]
    vectors = encoded(backbone, sequences(backbone.max_tokens), 1)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("budget", [1, 100, 100_000])
def test_other_sequences_of_a_batch_never_change_a_vector(make: Make, kind: str, budget: int) -> None:
    backbone = make(kind)
    mixed = sequences(1, 3, 6, 7, 20, 26, 27, 30, 33, 40, 41, 44, backbone.max_tokens, 2)
    alone = np.concatenate([encoded(backbone, [sequence], 1) for sequence in mixed])
    np.testing.assert_allclose(encoded(backbone, mixed, budget), alone, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_sequences_read_before_never_change_a_vector(make: Make, kind: str) -> None:
    backbone = make(kind)
    long, short = sequences(backbone.max_tokens, 5)
    first = encoded(backbone, [long], 1)
    encoded(backbone, [short], 1)
    np.testing.assert_array_equal(encoded(backbone, [long], 1), first)


@pytest.mark.parametrize("kind", KINDS)
def test_every_token_counts(make: Make, kind: str) -> None:
    backbone = make(kind)
    one = sequences(backbone.max_tokens)[0]
    vectors = encoded(backbone, [one, [*one[:-1], one[-1] + 1], [one[0] + 1, *one[1:]]], 1)
    assert np.abs(vectors[1:] - vectors[0]).max(axis=1).min() > 1e-4


@pytest.mark.parametrize("kind", LONG)
def test_the_first_token_sees_the_last_one(make: Make, kind: str) -> None:
    backbone = make(kind, pooling=Pooling.CLS)
    one = sequences(backbone.max_tokens)[0]
    vectors = encoded(backbone, [one, [*one[:-1], one[-1] + 1]], 1)
    assert np.abs(vectors[1] - vectors[0]).max() > 1e-5


@pytest.mark.parametrize("kind", KINDS)
def test_the_cls_vector_is_the_first_hidden_state(make: Make, kind: str) -> None:
    backbone = make(kind, pooling=Pooling.CLS)
    ids, mask = backbone.tokenizer.pad(sequences(9, 4))
    with torch.no_grad():
        first = backbone.hidden_states(ids, mask)[:, 0]
    pooled = backbone.pool(sequences(9, 4), 100).detach()
    torch.testing.assert_close(pooled, first, atol=1e-5, rtol=0)


def test_longformer_is_called_as_its_authors_do(make: Make) -> None:
    backbone = make("longformer")
    ids, mask = backbone.tokenizer.pad(sequences(14))  # a multiple of the window, so nothing is padded
    is_global = torch.zeros_like(ids)
    is_global[:, 0] = 1
    with torch.no_grad():
        hidden = backbone.model(input_ids=ids, attention_mask=mask.long(), global_attention_mask=is_global)[0]
        torch.testing.assert_close(backbone.hidden_states(ids, mask), hidden, atol=1e-6, rtol=0)


@pytest.mark.parametrize("training", [False, True])
def test_bigbird_is_sparse_where_long_and_full_where_short(make: Make, training: bool) -> None:
    backbone = make("bigbird")
    attention = backbone._attention
    assert isinstance(attention, BigBirdAttention)
    for module in (*backbone.model.modules(), *attention.full.modules()):
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    backbone.model.train(training)
    for length, sparse in ((20, False), (26, False), (27, True), (60, True)):
        ids, mask = backbone.tokenizer.pad(sequences(length))
        same = torch.allclose(backbone.hidden_states(ids, mask), attention.full(input_ids=ids)[0], atol=1e-5)
        assert same is not sparse
    assert attention.full.training is training


def test_sparse_and_full_attention_of_bigbird_share_their_weights(make: Make) -> None:
    backbone = make("bigbird")
    before = encoded(backbone, sequences(8), 1)
    backbone.pool(sequences(8, 40), 100).square().sum().backward()
    with torch.no_grad():
        for weight in backbone.model.parameters():
            if weight.grad is not None:
                weight -= weight.grad.sign() * 0.1
    assert np.abs(encoded(backbone, sequences(8), 1) - before).max() > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_backbone_reads_the_same(make: Make, tmp_path: Path, kind: str) -> None:
    encoder = MeanEncoder(make(kind, pooling=Pooling.CLS), window_tokens=40)
    encoder.save_pretrained(tmp_path)
    loaded = load_trainable(str(tmp_path), device="cpu", dtype=torch.float32)
    document = make_document("d", "the quick brown fox jumps over the lazy dog. " * 20)
    assert isinstance(loaded, MeanEncoder)
    assert (loaded.backbone.pooling, loaded.fingerprint) == (Pooling.CLS, encoder.fingerprint)
    np.testing.assert_array_equal(loaded.encode([document])[0].chunks, encoder.encode([document])[0].chunks)


def gradients(backbone: Backbone, lengths: tuple[int, ...]) -> tuple[dict[str, Tensor], int]:
    """The gradients of all weights, and how often a linear layer was computed."""
    calls: list[str] = []
    modules = [module for model in backbone._attention.models for module in model.modules()]
    linear = [module for module in modules if isinstance(module, torch.nn.Linear)]
    hooks = [module.register_forward_hook(lambda *_: calls.append("")) for module in linear]
    torch.manual_seed(0)
    backbone.model.train().zero_grad()
    towards = torch.linspace(-1, 1, backbone.width)
    (backbone.embed(sequences(*lengths), 60) @ towards).sum().backward()
    backbone.model.eval()
    for hook in hooks:
        hook.remove()
    named = backbone.model.named_parameters()
    return {name: weight.grad.clone() for name, weight in named if weight.grad is not None}, len(calls)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_checkpointed_gradients_are_the_same(make: Make, kind: str) -> None:
    backbone = make(kind)
    plain, calls = gradients(backbone, (44, 5, 8, 40))
    backbone.checkpoint_gradients()
    kept, more_calls = gradients(backbone, (44, 5, 8, 40))
    assert plain.keys() == kept.keys()
    for name in plain:
        torch.testing.assert_close(kept[name], plain[name], atol=1e-6, rtol=1e-4)
    assert more_calls > 1.5 * calls


def test_checkpointing_leaves_encoding_as_it_is_or_is_refused(make: Make) -> None:
    backbone = make("longformer")
    before = encoded(backbone, sequences(9, 30), 60)
    backbone.checkpoint_gradients()
    np.testing.assert_array_equal(encoded(backbone, sequences(9, 30), 60), before)
    backbone = make("distilbert")
    backbone.model.supports_gradient_checkpointing = False
    with pytest.raises(EncoderError, match=r"is a distilbert, which cannot checkpoint gradients; train it without"):
        backbone.checkpoint_gradients()


def test_the_description_names_the_pooling_and_the_fingerprint_depends_on_it(make: Make) -> None:
    described = asdict(MeanEncoder(make("distilbert"), window_tokens=12).config)
    assert described == {"window_tokens": 12, "pooling": "mean"}
    assert (
        MeanEncoder(make("distilbert", pooling=Pooling.CLS)).fingerprint != MeanEncoder(make("distilbert")).fingerprint
    )
