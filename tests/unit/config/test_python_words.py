import pytest

from pagemill.app.options import ParseOptions
from pagemill.config.python_words import in_python


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ("Pass its password with --password.", 'Pass its password with password="…".'),
        ("Take the layer (--text-layer always), or not.", 'Take the layer (text_layer="always"), or not.'),
        ("--threads 1 needs the least.", "threads=1 needs the least."),
        ("Read it with --recognition-engine vlm.", 'Read it with recognition=RecognitionSettings(engine="vlm").'),
        ("Pass one with --server URL.", 'Pass one with recognition=RecognitionSettings(servers=["URL"]).'),
        ("Say --describe figures,tables.", 'Say describing=DescribeSettings(kinds=["figures", "tables"]).'),
        (
            "Use --recognition-device cpu.",
            'Use recognition=RecognitionSettings(local=LocalModelSettings(device="cpu")).',
        ),
        ("--table-model requires an engine", 'table_model="…" requires an engine'),
        ("--no-crops saves time; --recursive, too", "crops=False saves time; recursive=True, too"),
        ("Try --overwrite.", "Try --overwrite."),
    ],
)
def test_options_become_keyword_arguments(told: str, said: str):
    assert in_python(told, ParseOptions) == said
