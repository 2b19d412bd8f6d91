"""The queries that come with a dataset are found beside its pages, in every layout in which datasets lie."""

import shutil
from pathlib import Path

import miniature_corpus
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from miniature_corpus import QUESTIONS, Layout
from synthetic_run import page, region, write_run

from pagemill.app.queries import AUTO, find_query_table, query_texts
from pagemill.document.labels import Label
from pagemill.errors import MissingInputError, UsageError
from pagemill.retrieval.query_sets import read_query_texts


def shards(folder: Path) -> list[str]:
    """Of the corpus."""
    found = sorted(path for path in folder.rglob("*") if path.suffix in (".parquet", ".arrow"))
    chosen = [str(path) for path in found if miniature_corpus.CORPUS in str(path)]
    assert chosen
    return chosen


@pytest.mark.parametrize("layout", Layout)
def test_queries_are_found_beside_the_pages(tmp_path: Path, layout: Layout):
    folder = miniature_corpus.write(tmp_path / "data", layout)
    table = find_query_table(shards(folder))
    queries, where = table.queries, table.name
    assert [(query.query, query.relevant) for query in queries] == [
        (text, {page: 1}) for text, page in QUESTIONS.items()
    ]
    assert [query.type for query in queries] == ["text", "cross", "visual"]
    assert miniature_corpus.QA in where
    texts, same = query_texts(AUTO, shards(folder))
    assert texts == tuple((query.id, query.query) for query in queries)
    assert same == where
    assert find_query_table([str(folder)]).queries == queries


def test_a_pattern_or_the_file_itself_may_be_named(tmp_path: Path):
    folder = miniature_corpus.write(tmp_path / "data")
    assert len(find_query_table([str(folder / "*.parquet")]).queries) == len(QUESTIONS)
    qa = folder / f"{miniature_corpus.QA}.parquet"
    assert read_query_texts(qa) == query_texts(AUTO, shards(folder))[0]


def test_ids_of_pages_are_those_of_the_run(tmp_path: Path):
    pq.write_table(pa.table({"id": ["a/b_0"], "query": ["?"], "ground_truth": [[0]]}), tmp_path / "qa.parquet")
    (query,) = find_query_table([str(tmp_path / "corpus.parquet")]).queries
    assert query.relevant == {"a_b_0": 1}


def test_none_or_several_are_reported(tmp_path: Path):
    folder = miniature_corpus.write(tmp_path / "outer" / "data")
    shutil.copy(folder / f"{miniature_corpus.QA}.parquet", folder / "another.parquet")
    with pytest.raises(UsageError, match="several tables of queries: "):
        find_query_table(shards(folder))
    for name in ("another", miniature_corpus.QA):
        (folder / f"{name}.parquet").write_bytes(b"PAR1 torn")
    with pytest.raises(MissingInputError, match="no table of queries"):
        find_query_table(shards(folder))


def test_a_table_beside_the_input_counts_only_with_a_page_of_the_run(tmp_path: Path):
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for number, is_found in ((30, True), (31, False)):
        out = tmp_path / f"run-{number}"
        write_run(out, [page("d", number, [region(0, Label.TEXT, "text")])])
        pq.write_table(pa.table({"id": ["d_30"], "query": ["?"], "ground_truth": [[0]]}), tmp_path / "qa.parquet")
        if is_found:
            assert len(find_query_table([str(corpus)], out).queries) == 1
        else:
            with pytest.raises(MissingInputError, match="no table of queries"):
                find_query_table([str(corpus)], out)
