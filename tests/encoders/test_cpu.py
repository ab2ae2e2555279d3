"""Encoders on processors and devices: precision, batches, and numbers of a machine."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import RobertaConfig, RobertaModel

from engine.encoders import hardware
from engine.encoders.backbone import Backbone
from engine.encoders.cpu import RANGES_FILE, CpuEncoder, OpenvinoBert, read_sizes
from engine.encoders.encoder import Encoder, Pooling, unit
from engine.encoders.files import BUNDLED_NAME, bundled_folder
from engine.encoders.hardware import (
    BatchReader,
    cpu_has_bf16,
    cpu_prefers_int8,
    default_dtype,
    set_up_kernels,
    token_budget_batches,
    tokens_at_once,
)
from engine.encoders.loading import default_encoder, load_encoder, load_trainable
from engine.encoders.trainable import MeanEncoder
from engine.errors import BudgetExceeded, EncoderError
from engine.text.document import Document
from tests.encoders.tiny import KINDS, Take, tamper
from tests.fakes import make_document

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
    with torch.no_grad():
        expected = slow.embed(SEQUENCES, 1024).numpy()
    np.testing.assert_allclose(fast.encode(SEQUENCES), expected, atol=2e-5)
    assert fast.n_read == len(SEQUENCES)


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
        assert min((first * other).sum(axis=1).min() for other in others) > 1 - 1e-3, dtype


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


LENGTHS = [3, 9, 4, 8, 1]


@given(st.lists(st.integers(0, 50), max_size=40), st.integers(1, 200))
def test_every_position_is_in_exactly_one_batch_within_the_budget(lengths: list[int], budget: int) -> None:
    batches = list(token_budget_batches(lengths, budget))
    assert sorted(position for batch in batches for position in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(lengths[position] for position in batch) <= budget


def test_the_longest_come_first_with_like_lengths_and_rows_come_back_in_order() -> None:
    assert list(token_budget_batches(LENGTHS, 16)) == [[1], [3, 2], [0, 4]]
    assert list(token_budget_batches([], 10)) == []
    gpu = SmallGpu(room=100)
    assert read_on(gpu, BatchReader(), 16) == [[0, 1], [1, 1], [2, 1], [3, 1], [4, 1]]
    assert gpu.read_batches == [[1], [3, 2], [0, 4]]


@dataclass
class SmallGpu:
    """Raises as torch does above a number of padded tokens; rows are positions."""

    room: int
    read_batches: list[list[int]] = field(default_factory=list)
    n_refused: int = 0

    def read(self, batch: Sequence[int]) -> Tensor:
        if len(batch) * max(LENGTHS[position] for position in batch) > self.room:
            self.n_refused += 1
            raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.\nmore")
        self.read_batches.append(list(batch))
        return torch.tensor([[position, 1.0] for position in batch])


def by_length(positions: Sequence[int], budget: int) -> Iterator[list[int]]:
    return token_budget_batches([LENGTHS[position] for position in positions], budget)


def read_on(gpu: SmallGpu, reader: BatchReader, budget: int = 32) -> list[list[float]]:
    with torch.inference_mode():
        rows: list[list[float]] = reader.read(range(5), budget, by_length, gpu.read).tolist()
    return rows


def test_a_batch_that_does_not_fit_is_read_in_halves_and_so_are_all_later_ones() -> None:
    gpu, reader = SmallGpu(room=16), BatchReader()
    assert read_on(gpu, reader) == [[0, 1], [1, 1], [2, 1], [3, 1], [4, 1]]
    assert (reader.limit, gpu.n_refused) == (16, 1)
    assert gpu.read_batches == [[1], [3, 2], [0, 4]]
    read_on(gpu, reader)
    assert gpu.n_refused == 1


@pytest.mark.parametrize(("device", "batches"), [("cpu", [[1], [3, 2], [0, 4]]), ("cuda:0", [[1, 3, 2, 0, 4]])])
def test_a_gpu_reads_larger_batches_unless_gradients_hold_them(
    device: str, batches: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    use_gpu_of(8 << 30, monkeypatch)
    gpu, small = SmallGpu(room=1000), SmallGpu(room=1000)
    read_on(gpu, BatchReader(device), 16)
    assert gpu.read_batches == batches
    BatchReader(device).read(range(5), 16, by_length, small.read)
    assert small.read_batches == [[1], [3, 2], [0, 4]]


@pytest.mark.parametrize(("gib", "tokens"), [(1, 1 << 16), (4, 1 << 17), (80, 1 << 18)])
def test_tokens_of_a_batch_follow_the_memory_of_the_gpu(gib: int, tokens: int, monkeypatch: pytest.MonkeyPatch) -> None:
    use_gpu_of(gib << 30, monkeypatch)
    assert (tokens_at_once("cuda", 4096), tokens_at_once("cpu", 4096)) == (tokens, 4096)


def use_gpu_of(n_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of its memory is held and unused."""
    for name, value in {
        "mem_get_info": (n_bytes // 2, 0),
        "memory_reserved": n_bytes,
        "memory_allocated": n_bytes // 2,
    }.items():
        monkeypatch.setattr(torch.cuda, name, lambda _, value=value: value)


def test_batches_read_before_one_that_does_not_fit_are_not_read_again() -> None:
    gpu = SmallGpu(room=9)
    first_short_ones = [[4, 0], [1, 2, 3]]

    def batches(positions: Sequence[int], budget: int) -> list[list[int]]:
        return first_short_ones if len(positions) == 5 else [[at] for at in range(len(positions))]

    with torch.inference_mode():
        rows = BatchReader().read(range(5), 32, batches, gpu.read)
    assert rows[:, 0].tolist() == [0, 1, 2, 3, 4]
    assert gpu.read_batches == [[4, 0], [1], [2], [3]]


def test_one_sequence_that_does_not_fit_raises_an_error_with_the_next_step() -> None:
    with pytest.raises(BudgetExceeded) as raised:
        read_on(SmallGpu(room=8), BatchReader())
    assert str(raised.value) == (
        "the GPU has no room for one chunk beside the weights (CUDA out of memory. Tried to allocate 2.00 GiB.); "
        "free its memory, or use --device cpu"
    )


def test_with_gradients_nothing_is_read_again() -> None:
    reader = BatchReader()
    with pytest.raises(torch.cuda.OutOfMemoryError):
        reader.read(range(5), 32, by_length, SmallGpu(room=16).read)
    assert reader.limit is None


DARK_TEXT = "the quick brown fox jumps over the lazy dog. every score of a query and its target document. " * 4


def _document() -> Document:
    return make_document("a", [("one", DARK_TEXT), ("two", "a dark house by the river bank. " * 9)])


@pytest.mark.parametrize("kind", KINDS)
def test_encoders_of_every_kind_shrink_and_give_the_same_vectors(kind: str, bert_folder: Path) -> None:
    encoder = KINDS[kind](bert_folder)
    (before,) = encoder.encode([_document()])
    assert encoder.tokens_at_once is None
    for module in encoder.module.modules():
        if isinstance(module, torch.nn.Embedding):
            module.register_forward_pre_hook(_no_room_for_more_than_three)
    (after,) = encoder.encode([_document()])
    assert encoder.tokens_at_once is not None and encoder.tokens_at_once < 4096
    np.testing.assert_allclose(after.chunks, before.chunks, atol=1e-5)
    np.testing.assert_allclose(after.document, before.document, atol=1e-5)


def _no_room_for_more_than_three(_: torch.nn.Module, given: tuple[Tensor]) -> None:
    if given[0].dim() == 2 and len(given[0]) > 3:
        raise torch.cuda.OutOfMemoryError("CUDA out of memory.")


@pytest.fixture(autouse=True)
def restore_precision() -> Iterator[None]:
    precision = torch.get_float32_matmul_precision()
    yield
    torch.set_float32_matmul_precision(precision)


@pytest.mark.parametrize(
    ("flags", "dtype", "prefers_int8"),
    [
        ("fpu avx2", torch.float32, False),
        ("fpu avx512_bf16", torch.bfloat16, False),
        ("fpu avx512_bf16 avx512_vnni", torch.bfloat16, True),
        ("avx512_bf16 avx512_vnni amx_bf16 amx_tile amx_int8", torch.bfloat16, False),
        ("avx2 avx_vnni", torch.float32, True),
        ("avx512f avx512_vnni", torch.float32, True),
    ],
)
def test_the_precision_on_a_cpu_is_the_fastest_that_it_multiplies_natively(
    flags: str, dtype: torch.dtype, prefers_int8: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cpuinfo").write_text(f"model name\t: Xeon\nflags\t\t: {flags}\nbugs\t\t: mmio_unknown\n")
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setattr(hardware, "Path", lambda _: tmp_path / "cpuinfo")
    assert (default_dtype("cpu"), cpu_prefers_int8()) == (dtype, prefers_int8)


def test_products_of_float32_are_as_exact_as_float32() -> None:
    set_up_kernels()
    one, other = torch.randn(300, 384), torch.randn(384, 512)
    want = one.double() @ other.double()
    assert ((one @ other) - want).abs().max() < 1e-4 * want.abs().mean()


@pytest.mark.parametrize(("error", "precision"), [(0.0, "medium"), (1e-2, "highest")])
def test_medium_precision_is_set_only_where_it_does_not_round_float32_products(
    error: float, precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    exact = torch.Tensor.__matmul__

    def multiply(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        is_rounded = one.dtype is torch.float32 and torch.get_float32_matmul_precision() == "medium"
        found = exact(one.double(), other.double()).to(one.dtype)
        return found * (1 + error) if is_rounded else found

    monkeypatch.setattr(torch.Tensor, "__matmul__", multiply)
    hardware._stays_float32.cache_clear()
    try:
        set_up_kernels()
    finally:
        hardware._stays_float32.cache_clear()
    assert torch.get_float32_matmul_precision() == precision
