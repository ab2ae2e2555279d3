"""Settings of a server: its address, and the token that an address beyond the loopback interface needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.errors import QueryError
from indexer.serving.settings import TOKEN_VARIABLE, ServerSettings, check_exposure, is_loopback, read_token

TOKEN = "a-token-of-32-characters-or-more"


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        *((host, True) for host in ("127.0.0.1", "localhost", "::1", "[::1]", "127.9.9.9")),
        *((host, False) for host in ("0.0.0.0", "::", "192.168.0.4", "example.org", "")),
    ],
)
def test_a_loopback_address_is_known(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


def test_an_address_other_than_loopback_needs_a_token_which_is_not_shown() -> None:
    with pytest.raises(QueryError, match=r"0\.0\.0\.0 can be reached .* --token-file FILE"):
        check_exposure(ServerSettings(host="0.0.0.0"))
    check_exposure(ServerSettings(host="0.0.0.0", token=TOKEN))
    check_exposure(ServerSettings())
    assert TOKEN not in repr(ServerSettings(token=TOKEN))


def test_a_token_comes_from_the_file_before_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TOKEN_VARIABLE, raising=False)
    assert read_token(None) is None
    monkeypatch.setenv(TOKEN_VARIABLE, TOKEN)
    assert read_token(None) == TOKEN
    with pytest.raises(QueryError, match=r"cannot be read from .*nothing"):
        read_token(tmp_path / "nothing")
    (tmp_path / "token").write_text("another-token-of-many-characters\n")
    assert read_token(tmp_path / "token") == "another-token-of-many-characters"


@pytest.mark.parametrize("token", ["", "short", "sixteen characters, but blanks", "sixteen-characters-ä"])
def test_a_weak_token_is_refused(tmp_path: Path, token: str) -> None:
    (tmp_path / "token").write_text(token)
    with pytest.raises(QueryError, match=r"the token in .* has \d+ characters; use 16 or more"):
        read_token(tmp_path / "token")
