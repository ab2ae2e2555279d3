"""Everything that a query needs. `longmatch` is the public package; nothing is imported before it is used."""

from engine.environment import wait_passively

wait_passively()

__version__ = "0.1.0"
