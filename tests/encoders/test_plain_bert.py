"""A plain BERT read without transformers: what is imported, the same vectors, and what is left to transformers."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import BertModel

from engine.encoders.backbone import backbone as backbone_module
from engine.encoders.backbone import model_folder
from engine.encoders.backbone.backbone import Backbone
from engine.encoders.backbone.plain_bert import PlainBert, read_bert
from engine.encoders.files import BUNDLED_NAME, bundled_folder, parse_json
from engine.encoders.loading import load_encoder
from engine.encoders.mean import MeanEncoder
from engine.encoders.trainable import inference
from engine.errors import EncoderError
from engine.text.document import Document
from tests.encoders.tampering import Take, tamper
from tests.fakes import make_document

ROOT = Path(__file__).parents[2]
BUNDLED_FINGERPRINT = "89876130ff69bea6348ab97e8b804f8b"  # of every index that the bundled encoder has built


@contextmanager
def only_transformers() -> Iterator[None]:
    """Within this context every folder is read by transformers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backbone_module, "load_plain_bert", lambda *_: None)
        patch.setattr(model_folder, "read_tokenizer", lambda *_: None)
        yield


def read(folder: Path, dtype: torch.dtype = torch.float32) -> PlainBert | None:
    return read_bert(folder, parse_json(folder / "config.json"), dtype)


def plain(folder: Path) -> Backbone:
    return Backbone(folder, device="cpu", dtype=torch.float32)


@pytest.mark.slow
def test_the_bundled_encoder_encodes_without_transformers() -> None:
    code = (
        "import sys\n"
        "from engine.encoders.loading import load_encoder\n"
        "from tests.fakes import make_document\n"
        "encoded = load_encoder(device='cpu').encode([make_document('d', 'The old fox. ' * 300)])\n"
        "print(len(encoded[0].chunks), 'transformers' in sys.modules)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout == "10 False\n", run.stderr


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", [BUNDLED_NAME, "tiny"])
def test_vectors_and_fingerprint_are_those_through_transformers(
    name: str, dtype: torch.dtype, bert_folder: Path, documents: list[Document]
) -> None:
    name = str(bert_folder) if name == "tiny" else name
    own = load_encoder(name, device="cpu", dtype=dtype)
    with only_transformers():
        other = load_encoder(name, device="cpu", dtype=dtype)
    assert isinstance(own, MeanEncoder) and isinstance(other, MeanEncoder)
    assert isinstance(own.backbone._held, PlainBert) and isinstance(other.backbone._held, BertModel)
    assert own.fingerprint == other.fingerprint
    for one, same in zip(own.encode(documents), other.encode(documents), strict=True):
        np.testing.assert_array_equal(one.document, same.document)
        np.testing.assert_array_equal(one.chunks, same.chunks)
    assert isinstance(own.backbone._held, PlainBert)


def test_an_index_of_the_bundled_encoder_stays_readable() -> None:
    assert load_encoder(BUNDLED_NAME, device="cpu").fingerprint == BUNDLED_FINGERPRINT


# The model of transformers, when it is needed.


def test_gradients_load_the_model_and_vectors_stay_the_same(bert_folder: Path) -> None:
    backbone = plain(bert_folder)
    before = backbone.encode([[5, 6, 7]], 64)
    assert backbone.embed([[5, 6, 7]], 64).requires_grad
    assert isinstance(backbone._held, BertModel)
    np.testing.assert_array_equal(backbone.encode([[5, 6, 7]], 64), before)
    assert not backbone.is_trained


def test_a_model_loaded_while_encoding_can_be_trained(bert_folder: Path) -> None:
    encoder = MeanEncoder(plain(bert_folder), window_tokens=12)
    document = make_document("d", "the quick brown fox jumps. " * 9)
    with inference(torch.nn.Module()), torch.device("meta"):
        weights = list(encoder.module.parameters())
    assert all(weight.requires_grad and weight.device.type == "cpu" for weight in weights)
    before = encoder.fingerprint
    with torch.no_grad():
        weights[0].add_(1)
    assert encoder.fingerprint != before
    assert encoder.backbone.is_trained
    encoder.embed([encoder.segment(document)]).documents.sum().backward()


def test_loading_the_model_draws_no_random_numbers(bert_folder: Path) -> None:
    backbone = plain(bert_folder)
    before = torch.get_rng_state()
    assert isinstance(backbone.model, BertModel)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_model_whose_weights_have_changed_on_disk_is_refused(take: Take) -> None:
    folder = take("backbone")
    backbone = plain(folder)
    weights = {name: value + 1 for name, value in load_file(folder / "model.safetensors").items()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(EncoderError) as raised:
        _ = backbone.model
    assert str(raised.value) == f"the weights in {folder} have changed since they were loaded; load them again"


def test_weights_are_counted_without_the_model(bert_folder: Path) -> None:
    encoder = MeanEncoder(plain(bert_folder))
    counted = encoder.weights_bytes
    assert isinstance(encoder.backbone._held, PlainBert)
    assert counted == 4 * sum(value.numel() for value in load_file(bert_folder / "model.safetensors").values())


# What is left to transformers.


def test_a_plain_bert_is_read(bert_folder: Path) -> None:
    for folder in (bert_folder, bundled_folder()):
        found = read(folder, torch.bfloat16)
        assert found is not None
        weights = load_file(folder / "model.safetensors")
        assert found.state_dict().keys() == weights.keys()
        for name, value in found.state_dict().items():
            assert torch.equal(value, weights[name].to(torch.bfloat16)), name
        assert [len(layer.state_dict()) for layer in found.encoder.layer] == [16] * found.config.num_hidden_layers


def test_layers_are_in_the_order_of_their_numbers(bert_folder: Path, tmp_path: Path) -> None:
    shutil.copytree(bert_folder, tmp_path, dirs_exist_ok=True)
    weights = load_file(bert_folder / "model.safetensors")
    first = {name: value for name, value in weights.items() if ".layer.0." in name}
    for number in range(2, 12):
        weights |= {name.replace(".0.", f".{number}."): torch.full_like(v, number) for name, v in first.items()}
    save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    tamper(tmp_path / "config.json", num_hidden_layers=12)
    found = read(tmp_path)
    assert found is not None
    assert [layer.output.dense.bias[0].item() for layer in found.encoder.layer][2:] == list(range(2, 12))


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ("model_type", "roberta"),
        ("model_type", None),
        ("hidden_act", "relu"),
        ("position_embedding_type", "relative_key"),
        ("is_decoder", True),
        ("add_cross_attention", True),
        ("layer_norm_eps", "1e-12"),
        ("layer_norm_eps", 0.0),
        ("pad_token_id", -1),
        ("pad_token_id", 10**6),
        ("pad_token_id", None),
        ("num_attention_heads", 5),
        ("num_attention_heads", True),
        ("num_hidden_layers", 1),
        ("num_hidden_layers", 3),
        ("num_hidden_layers", 10**30),
        ("hidden_size", "many"),
        ("vocab_size", 93),
        ("type_vocab_size", None),
    ],
)
def test_another_configuration_is_left_to_transformers(take: Take, entry: str, value: object) -> None:
    folder = take("backbone")
    assert read(folder) is not None
    tamper(folder / "config.json", **{entry: value})
    assert read(folder) is None


def _lacking(weights: dict[str, torch.Tensor]) -> None:
    del weights["encoder.layer.1.output.dense.bias"]


def _without_pooler(weights: dict[str, torch.Tensor]) -> None:
    del weights["pooler.dense.bias"]


def _more(weights: dict[str, torch.Tensor]) -> None:
    weights["encoder.layer.0.other"] = torch.zeros(2)


def _narrower(weights: dict[str, torch.Tensor]) -> None:
    weights["encoder.layer.1.output.dense.weight"] = torch.zeros(32, 63)


def _whole_numbers(weights: dict[str, torch.Tensor]) -> None:
    weights["encoder.layer.1.output.dense.bias"] = torch.zeros(32, dtype=torch.int8)


@pytest.mark.parametrize("change", [_lacking, _without_pooler, _more, _narrower, _whole_numbers])
def test_other_weights_are_left_to_transformers(take: Take, change: object) -> None:
    folder = take("backbone")
    weights = load_file(folder / "model.safetensors")
    assert callable(change)
    change(weights)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    assert read(folder) is None


@pytest.mark.parametrize("content", [b"", b"\xff\x00 garbage", b"{}"])
def test_a_damaged_file_is_left_to_transformers(take: Take, content: bytes) -> None:
    folder = take("backbone")
    (folder / "model.safetensors").write_bytes(content)
    assert read(folder) is None
