"""Reading regions with a vision-language model behind an OpenAI-compatible server."""
