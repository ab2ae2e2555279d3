"""What is written of an encoder: its configuration and its parameters."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from engine.encoders.backbone import load_weights, module_sha256, save_weights
from engine.encoders.colde import ColdeConfig, Freeze
from engine.encoders.encoder import Pooling, Variant
from engine.encoders.files import read_configuration, read_json
from engine.encoders.smith_config import Combination, SmithConfig, match_bert, smith, smith_short
from engine.encoders.tde import TdeConfig
from engine.errors import EncoderError

RELEASED_COLDE = ColdeConfig(variant=Variant.RELEASED, pooling=Pooling.MEAN, freeze=Freeze.ALL_BUT_LAST)


@dataclass(frozen=True)
class Sizes:
    heads: int = 4
    dropout: float = 0.1
    tied: bool = True
    pooling: Pooling | None = None

    def __post_init__(self) -> None:
        if self.heads == 7:
            raise EncoderError("heads is 7; take another number")


WHOLE = "a whole number up to 1,000,000"


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("heads", "4", WHOLE),
        ("heads", None, WHOLE),
        ("heads", True, WHOLE),
        ("heads", 4.0, WHOLE),
        ("heads", 10**30, WHOLE),
        ("heads", -1_000_001, WHOLE),
        ("dropout", "0.1", "a number up to 1,000,000"),
        ("dropout", float("inf"), "a number up to 1,000,000"),
        ("dropout", float("nan"), "a number up to 1,000,000"),
        ("dropout", False, "a number up to 1,000,000"),
        ("tied", 1, "true or false"),
        ("pooling", "max", "one of mean, cls"),
        ("pooling", ["cls"], "one of mean, cls"),
        ("pooling", None, "one of mean, cls"),
    ],
)
def test_a_value_of_another_kind_is_refused(name: str, value: Any, wanted: str) -> None:  # noqa: ANN401
    values = {"heads": 4, "dropout": 0.1, "tied": True, "pooling": "cls", name: value}
    with pytest.raises(EncoderError) as raised:
        read_configuration(Sizes, values, Path("f.json"))
    assert str(raised.value) == f"f.json: {name} is {value!r}, not {wanted}; save the encoder again"


def test_a_whole_number_is_accepted_for_a_float() -> None:
    made = read_configuration(Sizes, {"heads": 4, "dropout": 0, "tied": True, "pooling": "cls"}, Path("f.json"))
    assert (made.dropout, type(made.dropout), made.pooling) == (0.0, float, Pooling.CLS)


def test_an_error_of_the_configuration_names_the_file_and_shortens_the_value() -> None:
    with pytest.raises(EncoderError) as raised:
        read_configuration(Sizes, {"heads": 7, "dropout": 0, "tied": True, "pooling": "cls"}, Path("f.json"))
    assert str(raised.value) == "f.json: heads is 7; take another number"
    with pytest.raises(EncoderError) as raised:
        read_configuration(Sizes, {"heads": "x" * 10_000}, Path("f.json"))
    assert len(str(raised.value)) < 200


@pytest.mark.parametrize("content", ["", "{", "\xff", "[" * 100_000, "1" * 5000])
def test_a_file_that_is_not_json_is_an_encoder_error(tmp_path: Path, content: str) -> None:
    (tmp_path / "f.json").write_text(content, encoding="latin-1")
    with pytest.raises(EncoderError, match=r"f\.json cannot be read \(.*\); save the encoder again$"):
        read_json(tmp_path / "f.json")


def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "f.json").open("wb") as stream:
        stream.truncate(1 << 40)  # a hole
    with pytest.raises(EncoderError) as raised:
        read_json(tmp_path / "f.json")
    assert str(raised.value) == (
        f"{tmp_path / 'f.json'} cannot be read (it has 1,099,511,627,776 bytes, at most 67,108,864 are read); "
        "save the encoder again"
    )


@pytest.mark.parametrize("target", ["f.json", "nowhere", "/dev/zero", "/"])
def test_a_link_that_leads_to_no_file_is_an_encoder_error(tmp_path: Path, target: str) -> None:
    (tmp_path / "f.json").symlink_to(target)
    with pytest.raises(EncoderError, match=r"f\.json cannot be read \(no such file\)"):
        read_json(tmp_path / "f.json")


def test_the_released_smith_has_its_oddities_and_a_combined_vector_is_twice_as_wide() -> None:
    released, fixed = smith(Variant.RELEASED), smith(Variant.FIXED)
    assert (released.sentence_layers, fixed.sentence_layers) == (4, 6)
    assert fixed == SmithConfig()
    assert [replace(smith(), combination=kind).vector_width for kind in Combination] == [256, 512, 512, 512]


@pytest.mark.parametrize(
    ("variant", "blocks"), [(Variant.PAPER, (4, 128)), (Variant.RELEASED, (8, 32)), (Variant.FIXED, (4, 128))]
)
def test_smith_short_reads_few_blocks_with_bert_base(variant: Variant, blocks: tuple[int, int]) -> None:
    short = smith_short(variant)
    assert (short.max_blocks, short.block_tokens) == blocks
    assert (short.width, short.sentence_layers, short.sentence_heads, short.sentence_ffn) == (768, 12, 12, 3072)
    assert (short.document_layers, short.document_heads, short.document_ffn) == (3, 4, 512)


@pytest.mark.parametrize("variant", Variant)
def test_matchbert_has_one_block_and_nothing_above_it(variant: Variant) -> None:
    config = match_bert(variant, block_tokens=512)
    assert (config.max_blocks, config.document_layers, config.capacity) == (1, 0, 510)


def test_ablations_leave_out_attention_and_tables() -> None:
    assert (ColdeConfig().has_attention, ColdeConfig().has_tables, ColdeConfig().shifts_ids) == (True, True, False)
    without = ColdeConfig(without_lstm=True, without_positions=True)
    assert (without.has_attention, without.has_tables, without.shifts_ids) == (False, False, False)
    assert (RELEASED_COLDE.has_attention, RELEASED_COLDE.has_tables, RELEASED_COLDE.shifts_ids) == (False, False, True)


@pytest.mark.parametrize(
    ("config", "changes", "message"),
    [
        (ColdeConfig(), {"variant": "best"}, "variant is 'best', none of paper, released, fixed"),
        (ColdeConfig(), {"freeze": "all"}, "freeze is 'all', none of none, all_but_last"),
        (SmithConfig(), {"width": 250}, "width 250 is no multiple of sentence_heads 4; choose one that divides it"),
        (
            SmithConfig(),
            {"max_blocks": 200},
            "max_blocks 200 is more than document_positions 128; lower max_blocks, or raise document_positions",
        ),
        (
            SmithConfig(),
            {"variant": Variant.PAPER, "block_tokens": 3},
            "block_tokens 3 leaves no room beside 3 special tokens; raise block_tokens",
        ),
        (
            SmithConfig(),
            {"document_layers": 0},
            "without document layers there is nothing above a block: max_blocks is 48 and combination 'normal'; "
            "set them to 1 and 'normal'",
        ),
        (TdeConfig(), {"n_topics": 1}, "n_topics is 1; give at least 2, or 0 for no topic model"),
    ],
)
def test_values_that_do_not_fit_each_other_are_refused(config: Any, changes: dict[str, Any], message: str) -> None:  # noqa: ANN401
    with pytest.raises(EncoderError) as raised:
        replace(config, **changes)
    assert str(raised.value) == message


class Layers(nn.Module):
    def __init__(self, width: int = 3) -> None:
        super().__init__()
        self.linear = nn.Linear(width, 2)
        self.largest: Tensor
        self.register_buffer("largest", torch.tensor(7))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    save_weights(Layers().state_dict(), tmp_path / "w.safetensors")
    return tmp_path / "w.safetensors"


def test_weights_come_back_and_another_precision_applies_to_floating_point_alone(tmp_path: Path) -> None:
    layers = Layers()
    save_weights(layers.state_dict(), tmp_path / "w.safetensors")
    loaded = load_weights(Layers, tmp_path / "w.safetensors")
    assert module_sha256(loaded) == module_sha256(layers)
    assert loaded.linear.weight.requires_grad and loaded.linear.weight.device.type == "cpu"
    layers.largest.fill_(257)  # which bfloat16 does not hold
    save_weights(layers.state_dict(), tmp_path / "w.safetensors", dtype=torch.bfloat16)
    loaded = load_weights(Layers, tmp_path / "w.safetensors")
    assert torch.equal(loaded.linear.weight, layers.linear.weight.bfloat16().float())
    assert loaded.largest.item() == 257


def test_weights_of_another_shape_are_refused_before_they_are_made(file: Path) -> None:
    devices: list[str] = []

    def huge() -> Layers:
        layers = Layers(10**9)  # 8 GB
        devices.append(layers.linear.weight.device.type)
        return layers

    with pytest.raises(EncoderError) as raised:
        load_weights(huge, file)
    assert str(raised.value) == (
        f"{file} has linear.weight of shape (2, 3), the other files need (2, 1000000000); save the encoder again"
    )
    assert devices == ["meta"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nn.ModuleDict({"linear": nn.Linear(3, 2)}), r"has largest of shape \(\), the other files need None"),
        (lambda: nn.ModuleDict({"l": Layers()}), r"has l\.largest of shape None, the other files need \(\)"),
    ],
)
def test_weights_of_other_names_are_refused(file: Path, make: type[nn.Module], message: str) -> None:
    with pytest.raises(EncoderError, match=message):
        load_weights(make, file)


@pytest.mark.parametrize("content", [None, b"", b"no weights", b"\xff" * 64])
def test_a_damaged_file_is_an_encoder_error(file: Path, content: bytes | None) -> None:
    file.unlink()
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(EncoderError, match=r"w\.safetensors cannot be read \(.*\); save the encoder again$"):
        load_weights(Layers, file)
