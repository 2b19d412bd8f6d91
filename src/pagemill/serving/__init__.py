"""Starting, sizing, watching and stopping vLLM servers."""
