"""Readers: files of many formats become `Document` values with headed sections."""

from engine.readers.encoding import MAX_CONTAINER_BYTES
from engine.readers.reader import FORMATS, holds_document, is_readable, read_bytes, read_document, read_file
from engine.text.cleaning import MAX_DOCUMENT_BYTES
from engine.text.document import Unreadable

__all__ = [
    "FORMATS",
    "MAX_CONTAINER_BYTES",
    "MAX_DOCUMENT_BYTES",
    "Unreadable",
    "holds_document",
    "is_readable",
    "read_bytes",
    "read_document",
    "read_file",
]
