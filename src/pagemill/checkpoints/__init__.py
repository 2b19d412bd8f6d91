"""Models that run in this process with PyTorch: devices, data types, loading of checkpoints."""
