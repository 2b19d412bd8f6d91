"""Pixels: decode, resize, crop, encode."""
