"""Each promise of the documentation names a test that exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


@pytest.mark.parametrize("page", ["security", "storage"])
def test_the_tests_of_promises_exist(page: str) -> None:
    named = NAMED.findall((ROOT / "docs" / "explanation" / f"{page}.md").read_text())
    assert len(named) >= 8
    assert [one for one in named if f"def {one[1]}(" not in (ROOT / one[0]).read_text()] == []
