"""Vision-language models in this process, through transformers: loading, batches, generation, logits processors."""
