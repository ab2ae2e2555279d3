"""The HTTP API of an index: FastAPI in front, one encoder and several opened copies of the index behind."""
