"""Sizes of tiny new encoders that train quickly, as they are given on the command line."""

from __future__ import annotations

SMITH = {
    "block_tokens": "16",
    "max_blocks": "8",
    "width": "32",
    "sentence_layers": "1",
    "sentence_heads": "2",
    "sentence_ffn": "32",
    "sentence_positions": "16",
    "document_layers": "1",
    "document_heads": "2",
    "document_ffn": "32",
    "document_positions": "8",
}
COLDE = {"chunk_tokens": "24", "lstm_width": "8", "projection_width": "16"}
TDE = {"n_topics": "2", "topic_width": "4", "topic_hidden_width": "4", "min_df": "2", "max_df": "0.9"}
