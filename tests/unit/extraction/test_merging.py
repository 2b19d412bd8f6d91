from pagemill.extraction.merging import merged, plain, tree_of
from pagemill.extraction.result import Source


def source(page: int) -> Source:
    return Source(page=page, page_id=f"p{page}", bbox=(0, 0, 1, 1), bbox_2d=(0, 0, 1, 1), boxes=(), text="", score=1)


def tree(values, page: int, *found):
    return tree_of(values, {path: source(page) for path in found})


def test_objects_field_by_field():
    first = tree({"a": "x", "b": None, "c": {"d": None}}, 1, ("a",))
    later = tree({"a": None, "b": 2, "c": {"d": 3, "e": 4}}, 2, ("b",))
    assert plain(merged(first, later)) == {"a": "x", "b": 2, "c": {"d": 3, "e": 4}}


def test_the_first_founded_value_wins_and_others_are_kept():
    first = merged(tree({"a": "invented"}, 1), tree({"a": "read"}, 2, ("a",)))
    found = merged(first, tree({"a": "other"}, 3, ("a",)))["a"]
    assert (found.value, found.source.page) == ("read", 2)
    assert [(each.value, each.source and each.source.page) for each in found.alternatives] == [
        ("invented", None),
        ("other", 3),
    ]


def test_lists_in_order_scalars_once():
    values = merged(tree({"a": ["x", "y"], "i": [{"n": 1}]}, 1), tree({"a": ["y", "z", "z"], "i": [{"n": 1}]}, 2))
    assert plain(values) == {"a": ["x", "y", "z", "z"], "i": [{"n": 1}, {"n": 1}]}


def test_null_gives_way_to_an_object():
    assert plain(merged(tree({"a": None}, 1), tree({"a": {"b": 1}}, 2))) == {"a": {"b": 1}}
    assert plain(merged(tree({"a": {"b": 1}}, 1), tree({"a": None}, 2))) == {"a": {"b": 1}}


def test_an_item_that_a_later_part_shows_is_founded():
    (item,) = merged(tree({"a": ["x"]}, 1), tree({"a": ["x"]}, 2, ("a", 0)))["a"]
    assert item.source.page == 2
