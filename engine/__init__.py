"""Everything that a query needs. `longmatch` is the public package; nothing is imported before it is used."""

from __future__ import annotations

from engine.environment import wait_passively

wait_passively()
