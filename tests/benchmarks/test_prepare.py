from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from benchmarks.prepare import label_of
from benchmarks.speed.growth import growth
from benchmarks.store import exactness
from indexer import build
from tests.fakes import make_corpus


def test_an_encoder_is_named_with_its_fingerprint() -> None:
    assert label_of("folder/of/my model", "f" * 32) == "my_model@ffffffffffff"


@pytest.mark.parametrize(("main", "options"), [(exactness.main, []), (growth.main, [])])
def test_studies_of_vectors_refuse_an_index_of_words_alone(
    main: click.Command, options: list[str], tmp_path: Path
) -> None:
    build(tmp_path / "words.lm", make_corpus(3), encode="none")
    done = CliRunner().invoke(main, [str(tmp_path / "words.lm"), *options, "--out", str(tmp_path)])
    assert done.exit_code == 1
    assert "holds words alone and no vectors; add them: longmatch index" in done.stderr
