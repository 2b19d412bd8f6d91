"""A run as a dataset on the Hugging Face Hub, a URL or a folder."""
