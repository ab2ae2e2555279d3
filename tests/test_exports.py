"""Exports of each package are few, equal what their modules define, and load lazily."""

import copy
import pickle
from collections.abc import Mapping
from dataclasses import asdict, replace
from importlib import import_module
from typing import Any

import pytest

import longmatch
from engine.text.document import Document, deferred
from engine.text.segmentation import Section

PACKAGES = {"longmatch": 13, "longmatch.integrations": 5}  # the most names of each


@pytest.mark.parametrize("package", PACKAGES)
def test_exports_are_sorted_and_few(package: str) -> None:
    names = import_module(package).__all__
    assert names == sorted(set(names))
    assert 4 <= len(names) <= PACKAGES[package]
    assert set(names) <= set(dir(import_module(package)))


@pytest.mark.parametrize("name", longmatch._HOMES)
def test_every_export_is_what_its_module_defines(name: str) -> None:
    defined = getattr(import_module(longmatch._HOMES[name]), name)
    exported = getattr(longmatch, name)
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


WHOLE = Document("d", "Title", "text", (Section("", (), 0, 4),), {"year": 2020}, "d.txt", (0,), ((0, "[0001]"),))


class Maker:
    """Counts how often it is called."""

    def __init__(self) -> None:
        self.n_calls = 0

    def __call__(self) -> Mapping[str, Any]:
        self.n_calls += 1
        return {"text": WHOLE.text, "sections": WHOLE.sections, "pins": WHOLE.pins}


def later(make: Maker) -> Document:
    return deferred(Document, make, doc_id="d", title="Title", metadata={"year": 2020}, source="d.txt", pages=(0,))


def test_fields_are_computed_once_on_first_access() -> None:
    make = Maker()
    document = later(make)
    assert (document.doc_id, document.metadata, make.n_calls) == ("d", {"year": 2020}, 0)
    assert (document.text, document.sections, document.text, make.n_calls) == ("text", WHOLE.sections, "text", 1)


def test_an_unknown_attribute_is_an_error_and_computes_nothing() -> None:
    make = Maker()
    for document in (later(make), WHOLE):
        with pytest.raises(AttributeError, match="'Document' object has no attribute 'txt'"):
            document.txt  # type: ignore[attr-defined]  # noqa: B018
    assert make.n_calls == 0


def test_a_deferred_value_compares_prints_copies_and_pickles_like_a_complete_one() -> None:
    assert later(Maker()) == WHOLE == later(Maker())
    assert replace(WHOLE, text="other") != later(Maker())
    assert repr(later(Maker())) == repr(WHOLE)
    assert asdict(later(Maker())) == asdict(WHOLE)
    assert replace(later(Maker()), title="new") == replace(WHOLE, title="new")
    for again in (copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))):
        assert again(later(Maker())) == WHOLE


def test_an_error_of_the_maker_is_raised_on_each_access() -> None:
    def fail() -> Mapping[str, Any]:
        raise ValueError("torn")

    document = deferred(Document, fail, doc_id="d")
    for _ in range(2):
        with pytest.raises(ValueError, match="torn"):
            document.text  # noqa: B018
