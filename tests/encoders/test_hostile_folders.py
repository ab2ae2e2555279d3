"""Model folders that are refused: code, pickles, links that lead nowhere, impossible sizes, parts of two models."""

import ast
import json
import os
import pickle
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from engine.encoders.files import CONFIG_FILE
from engine.errors import EncoderError
from tests.encoders.tiny import KINDS, Take, assert_same_vectors, load, tamper

# Code.


def write_code(folder: Path) -> Path:
    """Write a module that leaves a trace when it is imported, and every entry that could lead to it."""
    trace = folder / "trace"
    code = f"from pathlib import Path\nPath({str(trace)!r}).touch()\nclass Evil: pass\n"
    for name in ("evil.py", "modeling.py", "__init__.py", "conftest.py", "sitecustomize.py"):
        (folder / name).write_text(code)
    classes = {"AutoConfig": "evil.Evil", "AutoModel": "evil.Evil", "AutoTokenizer": ["evil.Evil", "evil.Evil"]}
    tamper(folder / "config.json", auto_map=classes, custom_pipelines={"x": {"impl": "evil.Evil"}})
    tamper(folder / "tokenizer_config.json", auto_map=classes, processor_class="evil.Evil")
    tamper(folder / "modules.json", modules=[{"idx": 0, "name": "0", "path": "", "type": "evil.Evil"}])
    if (folder / CONFIG_FILE).exists():
        tamper(folder / CONFIG_FILE, auto_map=classes, module="evil", code="evil.Evil")
    return trace


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["backbone", *KINDS])
def test_code_beside_a_known_model_is_never_run(
    take: Take, saved: dict[str, Path], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = take(kind)
    trace = write_code(folder)
    monkeypatch.chdir(folder)
    assert_same_vectors(folder, saved[kind])
    assert not trace.exists()


@pytest.mark.parametrize("kind", ["backbone", "mean", "colde", "tde"])
@pytest.mark.parametrize("model_type", ["evil", "", None])
def test_a_model_that_only_its_own_code_can_load_is_refused(take: Take, kind: str, model_type: str | None) -> None:
    folder = take(kind)
    trace = write_code(folder)
    tamper(folder / "config.json", model_type=model_type)
    with pytest.raises(EncoderError, match="cannot be loaded as an encoder backbone"):
        load(folder)
    assert not trace.exists()


@pytest.mark.parametrize("kind", ["backbone", *KINDS])
def test_a_tokenizer_class_of_the_folder_is_never_run(take: Take, kind: str) -> None:
    folder = take(kind)
    trace = write_code(folder)
    tamper(folder / "tokenizer_config.json", tokenizer_class="Evil")
    try:
        load(folder)
    except EncoderError as error:
        assert str(folder) in str(error)
    assert not trace.exists()


@pytest.mark.parametrize(
    "kind",
    ["evil.Evil", "engine.encoders.trainable.MeanEncoder", "MeanEncoder", "os", "", None, 1, ["mean"], {"mean": 1}],
)
def test_only_the_names_of_known_encoders_are_taken(take: Take, kind: object) -> None:
    folder = take("mean")
    trace = write_code(folder)
    tamper(folder / CONFIG_FILE, encoder=kind)
    with pytest.raises(EncoderError) as raised:
        load(folder)
    assert str(raised.value).startswith(f"{folder / CONFIG_FILE} names encoder type {kind!r}, this version knows ")
    assert not trace.exists()


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ("attn_implementation", "kernels-community/flash-attn2"),
        ("_attn_implementation", "evil/kernel"),
        ("attn_implementation", "flash_attention_2"),
        ("attn_implementation", {"": "evil/kernel"}),
        ("quantization_config", {"quant_method": "evil"}),
        ("compression_config", {"quant_method": "evil"}),
    ],
)
def test_entries_that_fetch_code_or_packages_are_refused(take: Take, entry: str, value: object) -> None:
    for inside in (False, True):
        folder = take("backbone")
        tamper(folder / "config.json", **({"text_config": {entry: value}} if inside else {entry: value}))
        with pytest.raises(EncoderError, match=f"its config.json has {entry} "):
            load(folder)
        shutil.rmtree(folder)


def imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.ImportFrom):
        return [node.module or ""]
    return [alias.name for alias in node.names] if isinstance(node, ast.Import) else []


@pytest.mark.slow
def test_no_line_of_engine_and_indexer_trusts_code_or_pickles() -> None:
    root = Path(__file__).parents[2]
    sources = [file for package in ("engine", "indexer") for file in sorted((root / package).rglob("*.py"))]
    n_loads = 0
    for source in sources:
        for node in ast.walk(ast.parse(source.read_text())):
            assert not {"pickle", "dill", "joblib", "marshal", "shelve"}.intersection(imported(node)), source
            if not isinstance(node, ast.Call):
                continue
            name = ast.unparse(node.func)
            given = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
            assert name not in ("torch.load", "np.load", "eval", "exec"), source
            assert given.get("trust_remote_code", "False") == "False", source
            if name.startswith("Auto"):
                n_loads += 1
                assert given["trust_remote_code"] == "False", source
                assert name != "AutoModel.from_pretrained" or given["use_safetensors"] == "True", source
    assert n_loads == 4


# Pickles.


class Bomb:
    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.trace),)


@pytest.fixture
def bomb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> bytes:
    """A pickle that leaves a trace when it is read; `torch.load` raises an error."""

    def unpickled(*_: object, **__: object) -> None:
        raise AssertionError("something was unpickled")

    monkeypatch.setattr(torch, "load", unpickled)
    monkeypatch.setattr(torch.serialization, "load", unpickled)
    return pickle.dumps({"embeddings.word_embeddings.weight": Bomb(tmp_path / "trace")})


@pytest.mark.parametrize("kind", ["backbone", *KINDS])
def test_a_pickle_beside_the_weights_is_left_alone(
    take: Take, saved: dict[str, Path], kind: str, bomb: bytes, tmp_path: Path
) -> None:
    folder = take(kind)
    for name in ("pytorch_model.bin", "adapter_model.bin", "training_args.bin", "model.pt", "smith.bin"):
        (folder / name).write_bytes(bomb)
    assert_same_vectors(folder, saved[kind])
    assert not (tmp_path / "trace").exists()


PICKLES = [
    *((kind, "model.safetensors", "pytorch_model.bin") for kind in ("backbone", "mean", "colde", "tde")),
    *((kind, "model.safetensors", "model.safetensors") for kind in ("backbone", "mean")),
    *((kind, f"{kind}.safetensors", f"{kind}.safetensors") for kind in ("smith", "colde", "tde")),
]


@pytest.mark.parametrize(("kind", "weights", "pickled"), PICKLES)
def test_a_pickle_in_the_place_of_the_weights_is_refused(
    take: Take, kind: str, weights: str, pickled: str, bomb: bytes, tmp_path: Path
) -> None:
    folder = take(kind)
    (folder / weights).unlink()
    (folder / pickled).write_bytes(bomb)
    with pytest.raises(EncoderError, match=str(folder)):
        load(folder)
    assert not (tmp_path / "trace").exists()


@pytest.mark.parametrize("name", ["pytorch_model.bin", "sub/model.safetensors", "../backbone/model.safetensors"])
def test_an_index_of_weights_names_safetensors_of_the_folder_alone(take: Take, name: str, bomb: bytes) -> None:
    folder = take("backbone")
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").rename(folder / "other.safetensors")  # so that the folder holds safetensors
    (folder / "pytorch_model.bin").write_bytes(bomb)
    tamper(folder / "model.safetensors.index.json", metadata={}, weight_map=dict.fromkeys(weights, name))
    with pytest.raises(EncoderError, match=rf"names '{name}', only \*.safetensors beside it are read"):
        load(folder)


def test_weights_in_several_files_are_read(take: Take, saved: dict[str, Path]) -> None:
    folder = take("backbone")
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names = sorted(weights)
    places = {name: f"part-{number % 2}.safetensors" for number, name in enumerate(names)}
    for place in set(places.values()):
        part = {name: weights[name] for name in names if places[name] == place}
        save_file(part, folder / place, metadata={"format": "pt"})
    tamper(folder / "model.safetensors.index.json", metadata={}, weight_map=places)
    assert_same_vectors(folder, saved["backbone"])


@pytest.mark.parametrize("name", ["pytorch_model.bin", "adapter_model.bin", "../x.safetensors"])
def test_a_configuration_cannot_name_the_file_of_the_weights(take: Take, name: str, bomb: bytes) -> None:
    folder = take("backbone")
    for file in ("pytorch_model.bin", "adapter_model.bin"):
        (folder / file).write_bytes(bomb)
    tamper(folder / "config.json", transformers_weights=name)
    with pytest.raises(EncoderError, match=f"its config.json has transformers_weights '{name}'"):
        load(folder)


FILES = ["config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"]


@pytest.mark.parametrize("file", [*FILES, CONFIG_FILE])
@pytest.mark.parametrize("target", ["itself", "nowhere", "/dev/zero", "/", "pipe"])
def test_a_link_that_leads_to_no_file_is_refused(take: Take, file: str, target: str) -> None:
    folder = take("mean")
    (folder / file).unlink()
    if target == "pipe":
        os.mkfifo(folder / file)
    else:
        (folder / file).symlink_to(file if target == "itself" else target)
    with pytest.raises(EncoderError) as raised:
        load(folder)
    assert str(raised.value) == (
        f"{folder / file} is no file, as every *{(folder / file).suffix} of an encoder must be; restore the folder"
    )


@pytest.mark.parametrize("kind", KINDS)
def test_links_are_followed_as_in_the_cache_of_the_hub(saved: dict[str, Path], kind: str, tmp_path: Path) -> None:
    for file in saved[kind].iterdir():
        (tmp_path / file.name).symlink_to(file)
    assert_same_vectors(tmp_path, saved[kind])


SIZES = {
    "smith": ("width", "sentence_layers", "document_layers", "sentence_ffn", "document_ffn", "sentence_positions"),
    "colde": ("lstm_width", "projection_width", "heads"),
    "tde": ("n_topics", "topic_width", "topic_hidden_width"),
}
BERT_SIZES = ("hidden_size", "num_hidden_layers", "intermediate_size", "vocab_size")
BERT_SIZES += ("max_position_embeddings", "type_vocab_size")
UNFIT: list[tuple[str, str, str, object, str]] = [
    *(
        ("backbone", "config.json", entry, value, "^{folder} cannot be loaded as an encoder backbone: ")
        for entry in BERT_SIZES
        for value in (10**5, 10**9, 10**30, -1, "many", None)
    ),
    *(
        (kind, CONFIG_FILE, entry, value, ".")
        for kind, entries in SIZES.items()
        for entry in entries
        for value in (1_000_000, 10**30, -1, "many", None, [], 1e300)
    ),
    *(
        ("backbone", "tokenizer_config.json", "model_max_length", value, "{folder}")
        for value in (0, -1, 2, "x", [], float("nan"), float("inf"))
    ),
    *(("backbone", "config.json", "num_hidden_layers", layers, "{folder}") for layers in (1, 3)),  # the weights have 2
    *(("colde", CONFIG_FILE, "encoder", kind, CONFIG_FILE) for kind in ("smith", "tde")),
    ("backbone", "adapter_config.json", "base_model_name_or_path", "evil/model", "it holds an adapter; merge it into"),
]


@pytest.mark.parametrize(("kind", "file", "entry", "value", "message"), UNFIT)
def test_a_file_that_does_not_fit_the_others_is_refused(
    take: Take, kind: str, file: str, entry: str, value: object, message: str
) -> None:
    folder = take(kind)
    tamper(folder / file, **{entry: value})
    with pytest.raises(EncoderError, match=message.format(folder=folder)):
        load(folder)


@pytest.mark.parametrize("kind", ["backbone", "smith"])
def test_a_token_that_the_model_does_not_know_is_refused(take: Take, kind: str) -> None:
    folder = take(kind)
    content = json.loads((folder / "tokenizer.json").read_text())
    content["post_processor"]["cls"][1] = 1_000_000
    (folder / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(EncoderError, match=r"puts token 1000000 around a text, its model knows \d+; take"):
        load(folder)


def test_missing_weights_are_refused_instead_of_drawn_at_random(take: Take) -> None:
    folder = take("backbone")
    weights = load_file(folder / "model.safetensors")
    lacking = "encoder.layer.1.output.dense.bias"
    spare = {"other": weights.pop(lacking), **weights}
    save_file(spare, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(EncoderError, match=f"{lacking} is either in its config.json or in its weights, not in both"):
        load(folder)
