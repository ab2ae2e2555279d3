"""INSTRUCTOR on a random T5 of two layers, compared with sentence-transformers, which its authors built on."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.baselines.pretrained import INSTRUCTION, Instructor, load_given
from engine.errors import EncoderError
from tests.fakes import make_document

WORDS = "represent the document for retrieval : dog fox river bank one two three".split()
TEXTS = ["dog fox river", "one two three bank dog dog", "fox"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in the layout of hkunlp/instructor-*, with parameters in safetensors."""
    from safetensors.torch import save_file
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast, T5Config, T5EncoderModel

    made = tmp_path_factory.mktemp("instructor")
    vocabulary = {token: number for number, token in enumerate(["<pad>", "</s>", "<unk>", *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing("$A </s>", special_tokens=[("</s>", 1)])
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>", model_max_length=512
    ).save_pretrained(made)
    torch.manual_seed(0)
    config = T5Config(vocab_size=len(vocabulary), d_model=16, d_kv=4, d_ff=32, num_layers=2, num_heads=4)
    T5EncoderModel(config).save_pretrained(made)
    (made / "2_Dense").mkdir()
    save_file({"linear.weight": torch.randn(8, 16)}, made / "2_Dense" / "model.safetensors")
    dense = {"in_features": 16, "out_features": 8, "bias": False}
    identity = {"activation_function": "torch.nn.modules.linear.Identity"}
    (made / "2_Dense" / "config.json").write_text(json.dumps(dense | identity))
    return made


@pytest.fixture(scope="module")
def instructor(folder: Path) -> Instructor:
    return Instructor(folder, device="cpu", dtype=torch.float32)


def tokens(instructor: Instructor, texts: list[str]) -> list[list[int]]:
    return [ids for ids, _ in instructor.tokenizer.tokenize(texts)]


def test_vectors_are_those_of_sentence_transformers(folder: Path, instructor: Instructor) -> None:
    library = pytest.importorskip("sentence_transformers")
    modules = pytest.importorskip("sentence_transformers.models")
    transformer = modules.Transformer(str(folder))
    dense = modules.Dense(16, 8, bias=False, activation_function=torch.nn.Identity())
    dense.linear.weight.data = instructor._dense
    pooling = modules.Pooling(16, "mean", include_prompt=False)
    theirs = library.SentenceTransformer(modules=[transformer, pooling, dense, modules.Normalize()], device="cpu")
    expected = theirs.encode(TEXTS, prompt=INSTRUCTION)
    np.testing.assert_allclose(instructor.encode(tokens(instructor, TEXTS), 4096), expected, atol=1e-5)


def test_vectors_equal_the_equation(folder: Path, instructor: Instructor) -> None:
    from transformers import AutoTokenizer, T5EncoderModel

    tokenizer, model = AutoTokenizer.from_pretrained(folder), T5EncoderModel.from_pretrained(folder).eval()
    n_instruction = len(tokenizer(INSTRUCTION)["input_ids"]) - 1  # without </s>
    for text, vector in zip(TEXTS, instructor.encode(tokens(instructor, TEXTS), 4096), strict=True):
        with torch.inference_mode():
            hidden = model(**tokenizer(INSTRUCTION + text, return_tensors="pt")).last_hidden_state[0]
        mean = instructor._dense @ hidden[n_instruction:].mean(0)
        np.testing.assert_allclose(vector, (mean / mean.norm()).numpy(), atol=1e-5)


def test_batches_change_nothing(instructor: Instructor) -> None:
    sequences = tokens(instructor, TEXTS)
    np.testing.assert_allclose(instructor.encode(sequences, 1), instructor.encode(sequences, 4096), atol=1e-6)
    assert instructor.encode([], 4096).shape == (0, 8)


def test_the_instruction_counts_towards_the_token_limit_and_changes_the_vectors(
    folder: Path, instructor: Instructor
) -> None:
    other = Instructor(folder, device="cpu", dtype=torch.float32, instruction="the dog")
    assert (instructor.max_tokens, other.max_tokens) == (512 - 1 - 6, 512 - 1 - 2)
    assert other.sha256 != instructor.sha256
    sequences = tokens(instructor, TEXTS)
    assert not np.allclose(other.encode(sequences, 4096), instructor.encode(sequences, 4096), atol=1e-3)
    with pytest.raises(EncoderError, match="has 600 tokens of 512; shorten it"):
        Instructor(folder, device="cpu", dtype=torch.float32, instruction="dog " * 600)


def test_instructor_reads_documents_and_is_copied_like_any_given_model(folder: Path, instructor: Instructor) -> None:
    encoder = load_given(f"{folder}:instructor-first", device="cpu", dtype=torch.float32)
    document = make_document("d", "dog fox " * 400)
    (encoded,) = encoder.encode([document])
    assert encoded.coverage.tokens_read == 505
    (expected,) = instructor.encode([tokens(instructor, [document.text])[0][:505]], 4096)
    np.testing.assert_allclose(encoded.document, expected, atol=1e-6)
    copy = folder.parent / "copy"
    encoder.save_pretrained(copy)
    assert load_given(f"{copy}:instructor-first").fingerprint == encoder.fingerprint


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        ("2_Dense", "holds no folder 2_Dense, as INSTRUCTOR has one; take one of hkunlp/instructor-"),
        ("2_Dense/model.safetensors", r"2_Dense holds no \*\.safetensors; other weight formats are not read"),
        ("2_Dense/config.json", r"2_Dense.config\.json cannot be read"),
        ("model.safetensors", r"holds no \*\.safetensors; other weight formats are not read"),
    ],
)
def test_a_missing_file_raises_an_error_that_names_it(folder: Path, tmp_path: Path, broken: str, told: str) -> None:
    copy = Path(shutil.copytree(folder, tmp_path / "broken"))
    shutil.rmtree(copy / broken) if (copy / broken).is_dir() else (copy / broken).unlink()
    with pytest.raises(EncoderError, match=told):
        Instructor(copy, device="cpu")


def test_a_dense_layer_of_another_kind_is_refused(folder: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(folder, tmp_path / "tanh"))
    (copy / "2_Dense" / "config.json").write_text('{"bias": false, "activation_function": "torch.nn.Tanh"}')
    with pytest.raises(EncoderError, match="2_Dense is no matrix alone, as that of INSTRUCTOR is"):
        Instructor(copy, device="cpu")
