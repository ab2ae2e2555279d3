"""BERT-like models as chunk encoders: loading, tokens, precision, batches."""
