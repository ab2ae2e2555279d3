"""Vectors by OpenVINO are those of transformers, in any batch, on any threads, and near them in int8."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import RobertaConfig, RobertaModel

from engine.encoders.backbone import Backbone
from engine.encoders.cpu import RANGES_FILE, CpuEncoder, OpenvinoBert, read_sizes
from engine.encoders.encoder import Encoder, Pooling, Vectors, unit
from engine.encoders.files import BUNDLED_NAME, bundled_folder
from engine.encoders.hardware import cpu_has_bf16
from engine.encoders.loading import default_encoder, load_encoder, load_trainable
from engine.encoders.trainable import MeanEncoder
from engine.errors import EncoderError
from engine.text.document import Document
from tests.encoders.tiny import Take, tamper

BUNDLED_FINGERPRINT = "1c7a084326d5e5dc19e5123775ae5ac7"  # of every index that the bundled encoder has built
SEQUENCES = [[5 + (7 * number + place) % 80 for place in range(number % 45 + 1)] for number in range(70)]


def read(folder: Path, *, pooling: Pooling = Pooling.MEAN) -> OpenvinoBert:
    sizes = read_sizes(folder)
    assert sizes is not None
    return OpenvinoBert(folder, sizes, pooling=pooling, dtype="float32")


@pytest.fixture(scope="module")
def roberta_folder(bert_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A RoBERTa, which counts positions from its padding id on, with the tokenizer of the tiny BERT."""
    folder = tmp_path_factory.mktemp("roberta")
    shutil.copytree(bert_folder, folder, dirs_exist_ok=True)
    torch.manual_seed(3)
    n_words = json.loads((bert_folder / "config.json").read_text())["vocab_size"]
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    config = RobertaConfig(
        vocab_size=n_words,
        pad_token_id=0,
        max_position_embeddings=60,
        type_vocab_size=1,
        initializer_range=0.5,
        **sizes,
    )
    RobertaModel(config).save_pretrained(folder)
    return folder


@pytest.mark.parametrize("pooling", list(Pooling))
@pytest.mark.parametrize("name", ["bert", "roberta", "bfloat16 on disk"])
def test_vectors_are_those_of_transformers(
    name: str, pooling: Pooling, bert_folder: Path, roberta_folder: Path, tmp_path: Path
) -> None:
    folder = roberta_folder if name == "roberta" else bert_folder
    if name == "bfloat16 on disk":
        Backbone(bert_folder, device="cpu").save_pretrained(tmp_path, dtype=torch.bfloat16)
        folder = tmp_path
    slow = Backbone(folder, device="cpu", dtype=torch.float32, pooling=pooling)
    fast = read(folder, pooling=pooling)
    assert (fast.max_tokens, fast.width) == (slow.max_tokens, slow.width)
    np.testing.assert_allclose(fast.encode(SEQUENCES), slow.encode(SEQUENCES, 1024), atol=2e-5)
    assert fast.n_read == len(SEQUENCES)


def least_cosine(one: Vectors, other: Vectors) -> float:
    return float((one * other).sum(axis=1).min())


DTYPES = ["int8", "float32", *(["bfloat16"] if cpu_has_bf16() else [])]
ENCODING = """
import sys, numpy as np
from pathlib import Path
from engine.encoders.cpu import OpenvinoBert, read_sizes
folder, sequences = Path(sys.argv[1]), eval(sys.argv[2])
for dtype in sys.argv[3:]:
    bert = OpenvinoBert(folder, read_sizes(folder), dtype=dtype)
    alone = np.concatenate([bert.encode([ids]) for ids in sequences])
    sys.stdout.buffer.write(np.stack([alone, bert.encode(sequences)]).tobytes())
"""


def test_a_vector_depends_neither_on_its_batch_nor_on_threads(bert_folder: Path) -> None:
    rows = []
    for threads in ("1", "2", "3"):
        env = os.environ | {"OMP_NUM_THREADS": threads, "PYTHONPATH": str(Path(__file__).parents[2])}
        command = [sys.executable, "-c", ENCODING, str(bert_folder), str(SEQUENCES), *DTYPES]
        run = subprocess.run(command, env=env, capture_output=True, check=True)
        rows.append(np.frombuffer(run.stdout, np.float32).reshape(len(DTYPES), 2, len(SEQUENCES), -1))
    vectors = np.concatenate(rows, axis=1)  # of each type: alone and together, for each number of threads
    for dtype, (first, *others) in zip(DTYPES, vectors, strict=True):
        assert min(least_cosine(first, other) for other in others) > 1 - 1e-3, dtype


def test_an_encoder_on_a_cpu_has_the_chunks_vectors_and_fingerprint_of_the_trained_one(
    saved: dict[str, Path], documents: list[Document]
) -> None:
    fast = load_encoder(str(saved["mean"]), device="cpu", dtype="float32")
    slow = load_trainable(str(saved["mean"]), device="cpu", dtype=torch.float32)
    assert isinstance(fast, CpuEncoder) and isinstance(slow, MeanEncoder)
    assert fast.fingerprint == slow.fingerprint
    assert fast.encode([]) == []
    titled = [replace(document, title="Two old rivers") for document in documents[::2]]
    for one, other in zip(fast.encode(documents + titled), slow.encode(documents + titled), strict=True):
        assert (one.chunk_spans, one.coverage) == (other.chunk_spans, other.coverage)
        for name in ("document", "sections", "chunks"):
            np.testing.assert_allclose(getattr(one, name), getattr(other, name), atol=2e-5)


@pytest.mark.parametrize("load", [load_encoder, load_trainable])
def test_the_first_chunk_says_the_title_too(
    saved: dict[str, Path], documents: list[Document], load: Callable[..., Encoder]
) -> None:
    encoder = load(str(saved["mean"]), device="cpu")
    long, text = replace(documents[0], title=""), "An old river"
    title = replace(Document.from_text(text), title="")
    named, plain, alone = (encoder.encode([each])[0] for each in (replace(long, title=text), long, title))
    assert len(named.chunks) > 1
    np.testing.assert_allclose(named.chunks[0], unit(plain.chunks[0] + alone.chunks[0]), atol=2e-3)
    np.testing.assert_allclose(named.chunks[1:], plain.chunks[1:], atol=2e-3)
    of_file = encoder.encode([replace(long, title="draft", source="papers/draft.md")])[0]
    np.testing.assert_allclose(of_file.chunks, plain.chunks, atol=2e-3)


def test_a_copy_of_an_encoder_is_the_same(saved: dict[str, Path], documents: list[Document], tmp_path: Path) -> None:
    encoder = load_encoder(str(saved["mean"]), device="cpu")
    encoder.save_pretrained(tmp_path)
    again = load_encoder(str(tmp_path), device="cpu")
    assert (again.name, again.fingerprint) == (str(tmp_path), encoder.fingerprint)
    assert np.array_equal(again.encode(documents)[0].chunks, encoder.encode(documents)[0].chunks)


def test_an_index_of_the_bundled_encoder_stays_readable() -> None:
    assert load_encoder(BUNDLED_NAME, device="cpu").fingerprint == BUNDLED_FINGERPRINT
    assert read_sizes(bundled_folder()) is not None


def test_without_openvino_torch_encodes(bert_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert isinstance(load_encoder(str(bert_folder), device="cpu"), MeanEncoder)


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ("model_type", "electra"),
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
def test_another_configuration_is_left_to_torch(take: Take, entry: str, value: object) -> None:
    folder = take("backbone")
    assert read_sizes(folder) is not None
    tamper(folder / "config.json", **{entry: value})
    assert read_sizes(folder) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("encoder.layer.1.output.dense.bias", None),
        ("encoder.layer.0.other", torch.zeros(2)),
        ("encoder.layer.1.output.dense.weight", torch.zeros(32, 63)),
        ("encoder.layer.1.output.dense.bias", torch.zeros(32, dtype=torch.int8)),
    ],
)
def test_other_weights_are_left_to_torch(take: Take, name: str, value: torch.Tensor | None) -> None:
    folder = take("backbone")
    weights = {**load_file(folder / "model.safetensors"), name: value}
    kept = {name: tensor for name, tensor in weights.items() if tensor is not None}
    save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})
    assert read_sizes(folder) is None


@pytest.mark.parametrize("content", [b"", b"\xff\x00 garbage", b"{}"])
def test_a_damaged_file_is_left_to_torch(take: Take, content: bytes) -> None:
    folder = take("backbone")
    (folder / "model.safetensors").write_bytes(content)
    assert read_sizes(folder) is None


TEXT = Document.from_text(
    "A parser reads a grammar and a sentence.\n\nThe cell copies its genes before it divides.\n\nThe court dismissed "
    "the appeal, because the notice had been sent after the term of thirty days."
)


def test_the_bundled_encoder_in_int8_is_near_float32_under_a_name_of_its_own() -> None:
    short, exact = load_encoder(BUNDLED_NAME, dtype="int8"), load_encoder(BUNDLED_NAME, dtype="float32")
    again = load_encoder(short.name)
    assert (short.name, exact.name) == (f"{BUNDLED_NAME}:int8", BUNDLED_NAME)
    assert short.fingerprint == again.fingerprint != exact.fingerprint
    ((one,), (other,), (repeated,)) = (encoder.encode([TEXT]) for encoder in (short, exact, again))
    cosines = (one.chunks * other.chunks).sum(axis=1)
    assert 0.98 < cosines.min() < 0.99999
    assert np.array_equal(one.chunks, repeated.chunks)


def test_the_default_is_in_int8_where_a_cpu_multiplies_that_fastest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.encoders.loading.cpu_prefers_int8", lambda: True)
    assert default_encoder("cpu") == load_encoder(device="cpu").name == f"{BUNDLED_NAME}:int8"
    assert load_encoder(device="cpu", dtype="float32").name == load_encoder(BUNDLED_NAME).name == BUNDLED_NAME
    assert default_encoder("cuda:0") == BUNDLED_NAME


def without_ranges(folder: Path) -> Path:
    """The folder without the ranges that an encoder in int8 left beside its model."""
    (folder / RANGES_FILE).unlink(missing_ok=True)
    return folder


@pytest.mark.parametrize("damage", [None, "", "garbage", "of other parameters"])
def test_ranges_are_made_at_first_use_and_kept_beside_the_model(
    take: Take, damage: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    folder = without_ranges(take("backbone"))
    vectors = load_encoder(f"{folder}:int8").encode([TEXT])[0].chunks
    assert f"kept in {folder / RANGES_FILE}" in caplog.text
    content = (folder / RANGES_FILE).read_bytes()
    caplog.clear()
    if damage == "of other parameters":
        save_file(load_file(folder / RANGES_FILE), folder / RANGES_FILE, {"weights": "0" * 64})
    elif damage is not None:
        (folder / RANGES_FILE).write_text(damage)
    assert np.array_equal(load_encoder(f"{folder}:int8").encode([TEXT])[0].chunks, vectors)
    assert bool(caplog.text) == (damage is not None)
    assert (folder / RANGES_FILE).read_bytes() == content


def test_a_folder_that_takes_no_files_still_encodes(
    take: Take, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError

    monkeypatch.setattr("engine.encoders.cpu.NamedTemporaryFile", refuse)
    folder = without_ranges(take("backbone"))
    assert np.isfinite(load_encoder(f"{folder}:int8").encode([TEXT])[0].chunks).all()
    assert "is not writable" in caplog.text and not (folder / RANGES_FILE).exists()


def test_a_precision_that_the_encoder_or_the_processor_lacks_is_refused(
    saved: dict[str, Path], bert_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(EncoderError, match="int8 is for mean encoders over a BERT or a RoBERTa"):
        load_encoder(f"{saved['smith']}:int8")
    monkeypatch.setattr("engine.encoders.cpu.cpu_has_bf16", lambda: False)
    with pytest.raises(EncoderError, match="does not multiply bfloat16 natively"):
        load_encoder(str(bert_folder), device="cpu", dtype="bfloat16")
