import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pagemill.errors import CorruptInputError, InputError, MissingInputError, UnsupportedInputError
from pagemill.retrieval.query_sets import read_query_texts

QUERIES = (("q1", "who?"), ("2", "무엇, 언제"))


def test_all_formats(tmp_path):
    lines = [json.dumps({"_id": "q1", "text": "who?"}), "", json.dumps({"query-id": 2, "query": " 무엇, 언제 "})]
    (tmp_path / "q.jsonl").write_text("\ufeff" + "\n".join(lines), encoding="utf-8")
    (tmp_path / "q.csv").write_text('id,question\nq1,who?\n2,"무엇, 언제"\n', encoding="utf-8")
    (tmp_path / "q.tsv").write_text("id\ttext\nq1\twho?\n2\t무엇, 언제\n", encoding="utf-8")
    ids, texts = zip(*QUERIES, strict=True)
    pq.write_table(pa.table({"qid": ids, "query": texts, "more": [1, 2]}), tmp_path / "q.parquet")
    for suffix in ("jsonl", "csv", "tsv", "parquet"):
        assert read_query_texts(tmp_path / f"q.{suffix}") == QUERIES


@pytest.mark.parametrize(
    ("content", "error", "said"),
    [
        ("", InputError, "contains no query"),
        ('{"id": 1}', InputError, "query 1 has no text"),
        ('{"text": "x"}', InputError, "query 1 has no id"),
        ('{"id": true, "text": "x"}', InputError, "no id"),
        ('{"id": 1, "text": "x"}\n{"id": "1", "text": "y"}', InputError, "'1' appears twice"),
        ("[1]", CorruptInputError, "line 1"),
        ("{", CorruptInputError, "cannot be read"),
        ("[" * 100_000, CorruptInputError, "cannot be read"),
    ],
)
def test_what_is_wrong(tmp_path, content, error, said):
    (tmp_path / "q.jsonl").write_text(content)
    with pytest.raises(error, match=said):
        read_query_texts(tmp_path / "q.jsonl")


def test_no_such_files(tmp_path):
    with pytest.raises(MissingInputError):
        read_query_texts(tmp_path / "q.jsonl")
    with pytest.raises(UnsupportedInputError):
        read_query_texts(tmp_path / "q.docx")
    (tmp_path / "q.parquet").write_bytes(b"PAR1 noise PAR1")
    with pytest.raises(CorruptInputError):
        read_query_texts(tmp_path / "q.parquet")
