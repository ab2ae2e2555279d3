"""`__all__` of each package is sorted, short, and equals what its modules define."""

from __future__ import annotations

from importlib import import_module

import pytest

PACKAGES = {"engine": 8, "indexer": 8, "longmatch": 13, "longmatch.integrations": 5}  # the most names of each


@pytest.mark.parametrize("package", PACKAGES)
def test_exports_are_sorted_and_few(package: str) -> None:
    names = import_module(package).__all__
    assert names == sorted(set(names))
    assert 4 <= len(names) <= PACKAGES[package]
    assert set(names) <= set(dir(import_module(package))) or package in ("engine", "indexer")  # not for people


EXPORTS = [
    pytest.param(package, name)
    for package in PACKAGES
    if package != "longmatch.integrations"  # their packages may be missing
    for name in import_module(package)._HOMES
]


@pytest.mark.parametrize(("package", "name"), EXPORTS)
def test_every_export_is_what_its_module_defines(package: str, name: str) -> None:
    defined = getattr(import_module(import_module(package)._HOMES[name]), name)
    exported = getattr(import_module(package), name)
    assert exported is defined
    assert exported.__doc__


@pytest.mark.parametrize("package", PACKAGES)
def test_every_export_has_a_home(package: str) -> None:
    module = import_module(package)
    assert sorted(module._HOMES) == module.__all__


@pytest.mark.parametrize("package", PACKAGES)
def test_a_name_that_is_not_exported_is_an_attribute_error(package: str) -> None:
    with pytest.raises(AttributeError, match=f"^module '{package}' has no attribute 'no_such_name'$"):
        import_module(package).no_such_name  # noqa: B018
