from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.baselines.neural_scorers import NEURAL_SCORERS
from benchmarks.pairs.recipes import RECIPES
from benchmarks.pairs.scorers import LEARNED, NEURAL, SCORERS, TRAINED, ScorerOptions, make_scorer
from benchmarks.tasks.pairs import main as pairs


def test_the_names_of_scorers_are_those_of_baselines_and_recipes_and_are_unique() -> None:
    assert (set(NEURAL), set(TRAINED)) == (set(NEURAL_SCORERS), set(RECIPES))
    assert len(set(SCORERS)) == len(SCORERS)


@pytest.mark.parametrize("name", SCORERS)
def test_a_scorer_has_the_name_that_it_is_made_by(bert_folder: Path, name: str) -> None:
    assert make_scorer(name, ScorerOptions(encoder=str(bert_folder), is_small=True)).name == name


def test_the_help_lists_all_scorers() -> None:
    text = "".join(CliRunner().invoke(pairs, ["--help"]).output.split())
    assert f"Systems,separatedbycommas,of{','.join(SCORERS)};or:all." in text
    assert "re2" in LEARNED
