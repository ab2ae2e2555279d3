from tests.store.conftest import folder

__all__ = ["folder"]
