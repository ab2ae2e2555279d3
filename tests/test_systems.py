"""Operating systems on which longmatch runs or refuses to run."""

from __future__ import annotations

import pytest

from engine.errors import EngineError
from engine.systems import refuse_windows


def test_windows_is_refused_with_advice_to_use_linux() -> None:
    with pytest.raises(EngineError, match=r"does not run on Windows: .* use Linux, for example in WSL"):
        refuse_windows("win32")


@pytest.mark.parametrize("system", ["linux", "darwin"])
def test_other_systems_are_not_refused(system: str) -> None:
    refuse_windows(system)
