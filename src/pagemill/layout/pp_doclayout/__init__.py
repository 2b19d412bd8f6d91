"""PP-DocLayoutV3 and V4 in PyTorch: weights, preprocessing, inference and post-processing of raw outputs."""
