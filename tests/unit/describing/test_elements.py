import numpy as np

from pagemill.config.modes import Described
from pagemill.describing.elements import pictures, requests_for, take, wanted
from pagemill.document.labels import Label
from pagemill.document.page import WHOLE_PAGE, Description, ImageCrop, PageError, PageResult, Region, Status
from pagemill.export.markdown import page_markdown
from pagemill.recognition.base import Problem

ALL = frozenset(Described)


def page(*regions):
    listed = [
        Region(index=index, label=label, bbox_2d=(0, 0, 1, 1), bbox=box, content=content, **more)
        for index, (label, box, content, more) in enumerate(regions)
    ]
    return PageResult(
        page_id="d_1", page_idx=0, doc_id="d", source="d", page_number=1, width=100, height=100, regions=listed
    )


def mill():
    return page(
        (Label.TEXT, (0, 0, 100, 10), "Before.", {}),
        (Label.IMAGE, (0, 10, 50, 50), "lettering", {}),
        (Label.FIGURE_TITLE, (0, 50, 50, 60), "Figure 1", {"caption_of": 1}),
        (Label.IMAGE, (90, 90, 95, 95), None, {}),
        (Label.TABLE, (50, 10, 100, 50), "<table><tr><td>a</td><td>b</td></tr></table>", {}),
        (Label.CHART, (0, 0, 100, 100), None, {"source": WHOLE_PAGE}),
        (Label.TEXT, (0, 60, 100, 90), "After.", {}),
    )


def test_small_elements_those_without_a_place_and_described_ones_are_left_out():
    record = mill()
    assert [region.index for region in wanted(record, ALL)] == [1, 4]
    assert [region.index for region in wanted(record, {Described.TABLES})] == [4]
    record.regions[4].description = Description(summary="S")
    assert [region.index for region in wanted(record, ALL)] == [1]
    record.status = Status.FAILED
    assert list(wanted(record, ALL)) == []


def test_pictures_that_are_encoded_are_not_encoded_again():
    record = mill()
    record.image_crops = [ImageCrop(path="p", bbox=(0, 0, 1, 1), label=Label.IMAGE, region=1)]
    cut = pictures(record, np.zeros((100, 100, 3), np.uint8), ALL, [("p", b"saved")])
    assert cut[1] == b"saved"
    assert cut[4].startswith(b"\xff\xd8")
    first, second = requests_for(record, cut)
    assert (first.kind, first.around) == (Described.FIGURES, ("Before.", "After.", ("Figure 1",)))
    assert (second.index, second.kind, second.around.captions) == (4, Described.TABLES, ())


def test_answers_go_where_they_belong():
    record = mill()
    record.errors = [PageError(component="describe", category="old", message="m", region=4)]
    record.errors += [PageError(component="describe", category="kept", message="m", region=5)]
    take(record, {1: Description(summary="A [mill] `runs\\"), 4: Problem("truncated", "cut off"), 3: None})
    assert [region.index for region in record.regions if region.description] == [1]
    assert [(error.category, error.region) for error in record.errors] == [("kept", 5), ("truncated", 4)]
    assert record.errors[1].message == "the table has no description: cut off"
    assert "Figure 1: A (mill) 'runs\\\\" in page_markdown(record)
    assert "could not be read" not in page_markdown(record)


def test_what_is_left_out_of_a_description_is_an_error_of_its_page():
    record = mill()
    take(record, {1: Description(summary="A mill.", left_out=("the data", "keywords"))})
    (error,) = record.errors
    assert (error.component, error.category, error.region) == ("describe", "incomplete", 1)
    assert error.message.endswith("was left out: the data; keywords")
