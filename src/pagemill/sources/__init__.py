"""Pages in: PDF, images, multi-page TIFF, folders, globs, Arrow and Parquet shards, Hub datasets."""
