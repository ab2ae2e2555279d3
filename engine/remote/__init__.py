"""Partitions that other processes serve over HTTP: the client's side. The server is `indexer.serving.rounds`."""
