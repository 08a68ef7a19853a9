"""The rules about streaming queries: their batches, their sources, their state."""
