from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from benchmarks.prepare import label_of
from benchmarks.speed import growth
from indexer import build
from tests.fakes import make_corpus


def test_an_encoder_is_named_with_its_fingerprint() -> None:
    assert label_of("folder/of/my model", "f" * 32) == "my_model@ffffffffffff"


def test_growth_refuses_an_index_of_words_alone(tmp_path: Path) -> None:
    build(tmp_path / "words.lm", make_corpus(3), encode="none")
    done = CliRunner().invoke(growth.main, [str(tmp_path / "words.lm"), "--out", str(tmp_path)])
    assert done.exit_code == 1
    assert "holds words alone and no vectors; add them: longmatch index" in done.stderr
