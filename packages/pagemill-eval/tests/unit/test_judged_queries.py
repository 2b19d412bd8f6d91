import json

import miniature_corpus
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pagemill.app.queries import AUTO
from pagemill.errors import CorruptInputError, UsageError
from pagemill_eval.judged_queries import QueryFormat, judged_queries, read_queries


def lines(path, *objects):
    path.write_text("".join(json.dumps(each, ensure_ascii=False) + "\n" for each in objects), encoding="utf-8")
    return path


def test_jsonl(tmp_path):
    path = lines(
        tmp_path / "q.jsonl",
        {"id": "1", "query": "수강료", "relevant": ["a", "b"], "type": "table", "domain": "city"},
        {"id": "2", "query": "mill", "relevant": {"c": 2, "d": 0}},
    )
    first, second = read_queries(path, QueryFormat.JSONL)
    assert (first.query, first.relevant, first.type, first.domain) == ("수강료", {"a": 1, "b": 1}, "table", "city")
    assert second.relevant == {"c": 2, "d": 0}


def test_beir_takes_the_queries_that_the_table_judges(tmp_path):
    path = lines(
        tmp_path / "queries.jsonl",
        {"_id": "1", "text": "one", "metadata": {"type": "text"}},
        {"_id": "2", "text": "of another split"},
        {"_id": ["1"], "text": "of no split"},
        {"_id": 3, "text": "a number is an id like its digits"},
    )
    qrels = tmp_path / "test.tsv"
    qrels.write_text("query-id\tcorpus-id\tscore\n1\tdoc_1\t2\n1\tdoc_2\t0\n3\tdoc_3\t1\n", encoding="utf-8")
    only, third = read_queries(path, QueryFormat.BEIR, qrels)
    assert (only.id, only.query, only.relevant, only.type) == ("1", "one", {"doc_1": 2, "doc_2": 0}, "text")
    assert (third.id, third.relevant) == ("3", {"doc_3": 1})


def test_sds_kopub(tmp_path):
    path = tmp_path / "qa.parquet"
    columns = {
        "id": ["30_12", "30_12"],
        "query": ["예산은 얼마인가?", "누가 맡았나?"],
        "answer": ["x", "y"],
        "type": ["cross", "visual"],
        "domain": ["finance", "finance"],
        "ground_truth": [[12], [12]],
    }
    pq.write_table(pa.table(columns), path)
    first, second = read_queries(path, QueryFormat.SDS_KOPUB)
    assert (first.relevant, first.type, first.domain) == ({"30_12": 1}, "cross", "finance")
    assert first.id != second.id


@pytest.mark.parametrize(
    "text",
    [
        "not json\n",
        '{"id": "1", "query": "q"}\n',
        '{"id": "1", "query": "q", "relevant": []}\n',
        '{"id": "1", "query": " ", "relevant": ["a"]}\n',
        '{"id": "1", "query": "q", "relevant": ["a"]}\n{"id": "1", "query": "r", "relevant": ["a"]}\n',
        '{"id": "1", "query": "q", "relevant": {"a": 100000000000}}\n',
        '{"id": "1", "query": "q", "relevant": ["a"]}' + " " * 2**21,
        "",
    ],
)
def test_what_is_no_set_of_queries_is_refused(tmp_path, text):
    path = tmp_path / "q.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(CorruptInputError) as caught:
        read_queries(path, QueryFormat.JSONL)
    assert "line" not in str(caught.value) or "relevant" in (caught.value.remedy or "")


def test_what_pythons_own_writer_leaves_is_read(tmp_path):
    path = tmp_path / "q.jsonl"
    path.write_text('{"id": "1", "query": "q", "relevant": ["a"], "score": NaN}\n', encoding="utf-8")
    assert len(read_queries(path, QueryFormat.JSONL)) == 1


def test_other_files_are_refused(tmp_path):
    path = lines(tmp_path / "q.jsonl", {"_id": "1", "text": "one"})
    with pytest.raises(CorruptInputError, match="cannot be read as queries"):
        read_queries(path, QueryFormat.SDS_KOPUB)
    bad = tmp_path / "qrels.tsv"
    bad.write_text("1\ta\n", encoding="utf-8")
    with pytest.raises(CorruptInputError, match="line 1"):
        read_queries(path, QueryFormat.BEIR, bad)
    with pytest.raises(UsageError, match="needs the file"):
        read_queries(path, QueryFormat.BEIR)
    with pytest.raises(UsageError, match="has no file"):
        read_queries(path, QueryFormat.JSONL, bad)


def test_half_a_surrogate_pair_is_named(tmp_path):
    (tmp_path / "q.jsonl").write_text('{"id": "1", "query": "mi\\ud800ll", "relevant": ["a"]}\n')
    with pytest.raises(CorruptInputError, match=r"line 1: .*surrogates"):
        read_queries(tmp_path / "q.jsonl", QueryFormat.JSONL)


def test_those_of_the_dataset_and_of_a_file_are_the_same(tmp_path):
    folder = miniature_corpus.write(tmp_path / "data")
    pages = [str(path) for path in folder.glob(f"*{miniature_corpus.CORPUS}*")]
    found, where = judged_queries(AUTO, None, None, pages)
    assert [query.query for query in found] == list(miniature_corpus.QUESTIONS)
    assert miniature_corpus.QA in where
    file = folder / f"{miniature_corpus.QA}.parquet"
    assert judged_queries(str(file), None, None, ()) == (found, str(file))


def test_auto_needs_no_format(tmp_path):
    with pytest.raises(UsageError, match="knows the format"):
        judged_queries(AUTO, QueryFormat.JSONL, None, [str(tmp_path)])
