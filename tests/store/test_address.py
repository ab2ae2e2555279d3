"""An address of an index is accepted where a path is, and never shows its password."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from engine.errors import IndexMismatch
from engine.store.address import Address, index_place, is_address

URL = "postgresql://ann:secret@db.example:5433/papers?schema=eips&sslmode=require"


def test_a_url_is_an_address_and_a_name_is_a_folder() -> None:
    assert index_place(URL) == Address.of(URL)
    assert index_place("papers.lm") == Path("papers.lm")
    assert not isinstance(index_place("papers.lm"), Address)
    assert (is_address(URL), is_address("C:/papers"), is_address("a:b")) == (True, False, False)


def test_an_address_stays_itself() -> None:
    address = Address.of(URL)
    assert index_place(address) is address
    assert pickle.loads(pickle.dumps(address)).url == URL


def test_no_password_is_shown() -> None:
    address = Address.of(f"{URL}&password=hidden")
    for shown in (str(address), repr(address), f"{address}"):
        assert "secret" not in shown and "hidden" not in shown
    assert str(address) == "postgresql://ann@db.example:5433/papers?schema=eips&sslmode=require"


def test_the_schema_is_taken_from_the_address_and_the_rest_is_for_the_server() -> None:
    address = Address.of(URL)
    assert (address.schema, address.name) == ("eips", "eips")
    assert address.database == "postgresql://ann:secret@db.example:5433/papers?sslmode=require"
    assert Address.of("postgresql:///papers").schema == "longmatch"


def test_an_empty_host_keeps_its_slashes() -> None:
    address = Address.of("postgresql:///papers?host=/run/postgresql&schema=eips")
    assert str(address) == "postgresql:///papers?host=/run/postgresql&schema=eips"
    assert address.database == "postgresql:///papers?host=/run/postgresql"


def test_no_file_has_the_name_of_an_address() -> None:
    assert not Address.of(URL).exists()


@pytest.mark.parametrize("name", ["ftp://example/papers", "mysql://example/papers"])
def test_other_schemes_are_refused(name: str) -> None:
    with pytest.raises(IndexMismatch, match=f"{name} is no address of an index; name a folder, postgresql://"):
        index_place(name)
