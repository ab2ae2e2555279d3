"""CoLDE: chunks with section numbers, chunkwise attention and a BiLSTM (Jha et al. 2022)."""
