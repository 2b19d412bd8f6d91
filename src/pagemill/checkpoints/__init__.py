"""Models that run in this process: sessions of ONNX Runtime; PyTorch's devices, data types, loading of checkpoints."""
