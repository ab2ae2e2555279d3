"""Tables of cases for `pytest.mark.parametrize`."""

from collections.abc import Mapping

import pytest


def cases(names: str, table: Mapping[str, object]) -> pytest.MarkDecorator:
    """A test for each row of a table: a sentence, which is the id of the test, and the values of `names`."""
    return pytest.mark.parametrize(names, list(table.values()), ids=list(table))
