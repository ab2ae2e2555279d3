"""Configurations of encoders as JSON: written, read back, and refused where they are damaged."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest

from engine.encoders.colde.config import ColdeConfig, Freeze
from engine.encoders.encoder import Pooling, Variant
from engine.encoders.files import CONFIG_FILE, read_configuration, read_json, write_description
from engine.encoders.smith.config import match_bert, smith, smith_short
from engine.encoders.tde.layers import TdeConfig
from engine.errors import EncoderError


@pytest.mark.parametrize(
    "config",
    [
        smith(Variant.RELEASED),
        smith_short(Variant.PAPER),
        match_bert(),
        ColdeConfig(Variant.RELEASED, pooling=Pooling.MEAN, freeze=Freeze.ALL_BUT_LAST),
        ColdeConfig(without_lstm=True, temperature=1),
        TdeConfig(),
        TdeConfig(Variant.PAPER, max_df=1, n_topics=0),
    ],
)
def test_a_configuration_comes_back_from_json(config: Any, tmp_path: Path) -> None:  # noqa: ANN401
    write_description(tmp_path, {"encoder": "any", **asdict(config)}, "# Any\n")
    values = read_json(tmp_path / CONFIG_FILE)
    assert values["encoder"] == "any"
    assert read_configuration(type(config), values, tmp_path / CONFIG_FILE) == config


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


def test_an_error_of_the_configuration_itself_names_the_file() -> None:
    with pytest.raises(EncoderError) as raised:
        read_configuration(Sizes, {"heads": 7, "dropout": 0, "tied": True, "pooling": "cls"}, Path("f.json"))
    assert str(raised.value) == "f.json: heads is 7; take another number"


def test_a_long_value_is_shortened_in_the_error() -> None:
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
