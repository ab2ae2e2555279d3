"""The HTTP API of an index: FastAPI in front, one encoder and the opened index behind."""
