from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.measuring.isolation import ProcessFailed, ask_process
from tests.benchmarks.telling import fail, tell_sum


def test_a_process_answers_in_a_file(tmp_path: Path) -> None:
    place = tmp_path / "one.x"  # a dot in a name is no suffix
    assert ask_process(tell_sum, 2, 3, name="sum", place=place, advice="add by hand") == {"sum": 5}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.x.tell_sum.json", "one.x.tell_sum.txt"]


def test_a_failure_has_the_last_words_and_the_advice(tmp_path: Path) -> None:
    with pytest.raises(ProcessFailed, match=r"(?s)^sum ended with 1 \(.*ValueError: no numbers\); add by hand$"):
        ask_process(fail, name="sum", place=tmp_path / "one", advice="add by hand")
