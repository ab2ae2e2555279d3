from __future__ import annotations

from pathlib import Path

from benchmarks.measuring.peak import Memory
from benchmarks.scaling.notes import Noted, note, noted


def test_what_a_step_took_is_kept_beside_the_index(tmp_path: Path) -> None:
    taken = Noted(3.5, Memory(1.0, 4.0, 2.0, 3.0))
    assert noted(tmp_path / "x.lm", "grow") is None
    note(tmp_path / "x.lm", "grow", taken)
    note(tmp_path / "x.lm", "publish 7", Noted(1.0, taken.memory))
    assert noted(tmp_path / "x.lm", "grow") == taken
