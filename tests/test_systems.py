from __future__ import annotations

import pytest

from engine.errors import EngineError
from engine.systems import refuse_windows


def test_windows_is_refused_with_the_way_out() -> None:
    with pytest.raises(EngineError, match=r"does not run on Windows: .* use Linux, for example in WSL"):
        refuse_windows("win32")


@pytest.mark.parametrize("system", ["linux", "darwin"])
def test_other_systems_are_not_refused(system: str) -> None:
    refuse_windows(system)
