"""Slides, and charts of all Office files: nothing is lost without a word."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import made_documents as made
import pptx
from lxml import etree
from pptx.chart.data import BubbleChartData, CategoryChartData, XyChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.opc.package import Part
from pptx.opc.packuri import PackURI
from pptx.util import Inches
from test_formats import blocks, read, texts

from pagemill.document.labels import Label
from pagemill.document.page import Furniture
from pagemill.readers.base import Document

NAMES = (
    'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" '
    'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" '
    'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships" '
    'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
)


def slide(folder: Path, fill: Callable[[Any], None]) -> Document:
    deck = pptx.Presentation()
    fill(deck.slides.add_slide(deck.slide_layouts[6]))
    deck.save(str(folder / "a.pptx"))
    return read(folder / "a.pptx", "pptx:read")


def picture(page: Any) -> str:
    """A picture as XML, without its shape."""
    shape = page.shapes.add_picture(made.png(), 0, 0)
    (name,) = shape._element.xpath(".//a:blip/@r:embed")
    page.shapes._spTree.remove(shape._element)
    return (
        '<p:pic><p:nvPicPr><p:cNvPr id="8" name="x"/><p:cNvPicPr/><p:nvPr/></p:nvPicPr>'
        f'<p:blipFill><a:blip r:embed="{name}"/></p:blipFill><p:spPr/></p:pic>'
    )


def add(page: Any, markup: str) -> None:
    from pptx.oxml import parse_xml

    page.shapes._spTree.append(parse_xml(markup))


def test_embedded_objects_keep_their_pictures(tmp_path: Path):
    def fill(page: Any) -> None:
        add(
            page,
            f'<p:graphicFrame {NAMES}><p:nvGraphicFramePr><p:cNvPr id="5" name="O"/><p:cNvGraphicFramePr/><p:nvPr/>'
            '</p:nvGraphicFramePr><p:xfrm><a:off x="0" y="0"/><a:ext cx="900000" cy="900000"/></p:xfrm><a:graphic>'
            '<a:graphicData uri="http://schemas.openxmlformats.org/presentationml/2006/ole"><mc:AlternateContent>'
            '<mc:Choice Requires="v"><p:oleObj name="Sheet"><p:embed/></p:oleObj></mc:Choice><mc:Fallback>'
            f'<p:oleObj name="Sheet"><p:embed/>{picture(page)}</p:oleObj></mc:Fallback></mc:AlternateContent>'
            "</a:graphicData></a:graphic></p:graphicFrame>",
        )

    assert len([block for block in blocks(slide(tmp_path, fill)) if block.picture]) == 1


def test_of_alternatives_without_text_the_picture_is_read(tmp_path: Path):
    def fill(page: Any) -> None:
        add(
            page,
            f'<mc:AlternateContent {NAMES}><mc:Choice Requires="p14"><p:contentPart r:id="rId9"/></mc:Choice>'
            f"<mc:Fallback>{picture(page)}</mc:Fallback></mc:AlternateContent>",
        )

    assert len([block for block in blocks(slide(tmp_path, fill)) if block.picture]) == 1


def chart(folder: Path, kind: XL_CHART_TYPE, data: Any) -> list[list[str]]:
    def fill(page: Any) -> None:
        page.shapes.add_chart(kind, 0, 0, Inches(3), Inches(3), data)

    (table,) = texts(slide(folder, fill), Label.TABLE)
    rows = etree.fromstring(table or "").iter("tr")
    return [[each.text or "" for each in row] for row in rows]


def test_series_with_other_x_values_have_a_column_of_them(tmp_path: Path):
    data = XyChartData()
    for name, points in (("A", ((1, 11), (2, 12))), ("B", ((1, 21), (2, 22))), ("C", ((5, 31), (6, 32)))):
        series = data.add_series(name)
        for point in points:
            series.add_data_point(*point)
    assert chart(tmp_path, XL_CHART_TYPE.XY_SCATTER, data) == [
        ["", "A", "B", "", "C"],
        ["1", "11", "21", "5", "31"],
        ["2", "12", "22", "6", "32"],
    ]


def test_categories_in_levels_are_joined(tmp_path: Path):
    data = CategoryChartData()
    for name, inner in (("East", ("e1", "e2")), ("West", ("w1",))):
        outer = data.add_category(name)
        for each in inner:
            outer.add_sub_category(each)
    data.add_series("Sales", (1.5, 2.5, 3.5))
    rows = chart(tmp_path, XL_CHART_TYPE.COLUMN_CLUSTERED, data)
    assert rows[1:] == [["East / e1", "1.5"], ["East / e2", "2.5"], ["West / w1", "3.5"]]


def test_charts_of_office_2016_are_read(tmp_path: Path):
    space = 'xmlns:cx="http://schemas.microsoft.com/office/drawing/2014/chartex"'
    points = '<cx:lvl><cx:pt idx="0">{}</cx:pt><cx:pt idx="1">{}</cx:pt></cx:lvl>'
    outer = '<cx:lvl><cx:pt idx="0">Fruit</cx:pt></cx:lvl>'
    data = (
        f'<cx:chartSpace {space}><cx:chartData><cx:data id="0"><cx:strDim>{points.format("fig", "plum")}{outer}'
        f"</cx:strDim><cx:numDim>{points.format(3, 4)}</cx:numDim></cx:data></cx:chartData><cx:chart><cx:series><cx:tx>"
        '<cx:txData><cx:v>Sales</cx:v></cx:txData></cx:tx><cx:dataId val="0"/></cx:series></cx:chart></cx:chartSpace>'
    )

    def fill(page: Any) -> None:
        part = Part(PackURI("/ppt/charts/x.xml"), "application/xml", page.part.package, data.encode())
        name = page.part.relate_to(part, "http://schemas.microsoft.com/office/2014/relationships/chartEx")
        add(
            page,
            f'<mc:AlternateContent {NAMES}><mc:Choice Requires="x"><p:graphicFrame><p:nvGraphicFramePr><p:cNvPr id="5"'
            ' name="O"/><p:cNvGraphicFramePr/><p:nvPr/></p:nvGraphicFramePr><p:xfrm/><a:graphic><a:graphicData uri="x">'
            f'<cx:chart {space} r:id="{name}"/></a:graphicData></a:graphic></p:graphicFrame></mc:Choice>'
            f"<mc:Fallback>{picture(page)}</mc:Fallback></mc:AlternateContent>",
        )

    (table,) = texts(slide(tmp_path, fill), Label.TABLE)
    assert re.findall("<t[hd]>(.*?)</t", table or "") == ["", "Sales", "Fruit / fig", "3", "Fruit / plum", "4"]


def test_typed_labels_are_behind_the_values(tmp_path: Path):
    data = CategoryChartData()
    data.categories = ("a", "b")
    data.add_series("S", (1, 2))

    def fill(page: Any) -> None:
        made_ = page.shapes.add_chart(XL_CHART_TYPE.PIE, 0, 0, Inches(3), Inches(3), data).chart
        made_.plots[0].series[0].points[1].data_label.text_frame.text = "best"

    (table,) = texts(slide(tmp_path, fill), Label.TABLE)
    assert table is not None and "<td>2 (best)</td>" in table and "<td>1</td>" in table


def test_bubbles_have_their_sizes(tmp_path: Path):
    data = BubbleChartData()
    series = data.add_series("S")
    series.add_data_point(1, 10, 5)
    series.add_data_point(2, 20, 7)
    assert chart(tmp_path, XL_CHART_TYPE.BUBBLE, data) == [["", "S", "S"], ["1", "10", "5"], ["2", "20", "7"]]


def test_axes_have_their_titles(tmp_path: Path):
    def fill(page: Any) -> None:
        data = CategoryChartData()
        data.categories = ["a"]
        data.add_series("S", [1])
        made_chart = page.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, 0, 0, Inches(3), Inches(3), data).chart
        made_chart.value_axis.axis_title.text_frame.text = "Tons"
        made_chart.category_axis.axis_title.text_frame.text = "Port"

    assert texts(slide(tmp_path, fill), Label.FIGURE_TITLE) == ["Port", "Tons"]


def test_footers_of_slides_are_furniture(tmp_path: Path):
    def fill(page: Any) -> None:
        add(
            page,
            f'<p:sp {NAMES}><p:nvSpPr><p:cNvPr id="9" name="f"/><p:cNvSpPr/><p:nvPr><p:ph type="ftr" idx="11"/>'
            "</p:nvPr></p:nvSpPr><p:spPr/><p:txBody><a:bodyPr/><a:p><a:r><a:t>Confidential</a:t></a:r></a:p>"
            "</p:txBody></p:sp>",
        )

    (foot,) = blocks(slide(tmp_path, fill))
    assert (foot.content, foot.label, foot.furniture) == ("Confidential", Label.FOOTER, Furniture.PROVEN)


def test_text_of_layouts_comments_and_covered_cells(tmp_path: Path):
    def fill(page: Any) -> None:
        box = '<p:nvSpPr><p:cNvPr id="9" name="x"/><p:cNvSpPr/><p:nvPr/></p:nvSpPr><p:spPr/><p:txBody><a:bodyPr/>'
        layout = f"<p:sp {NAMES}>{box}<a:p><a:r><a:t>Confidential</a:t></a:r></a:p></p:txBody></p:sp>"
        page.slide_layout.shapes._spTree.append(etree.fromstring(layout))
        table = page.shapes.add_table(1, 2, 0, 0, Inches(3), Inches(1)).table
        table.cell(0, 0).text, table.cell(0, 1).text = "a", "covered"
        table.cell(0, 1)._tc.set("hMerge", "1")
        add(page, f'<p:contentPart {NAMES} r:id="rId9"/>')
        comments = f"<p:cmLst {NAMES}><p:cm><p:text>Is it so?</p:text></p:cm></p:cmLst>".encode()
        kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/comments"
        page.part.relate_to(Part(PackURI("/ppt/c.xml"), "application/xml", page.part.package, comments), kind)

        page.notes_slide.notes_text_frame.text = "notes"
        page.notes_slide.shapes._spTree.append(etree.fromstring(layout))

    found = slide(tmp_path, fill)
    assert texts(found, Label.FOOTER) == ["Confidential"] and texts(found, Label.ASIDE_TEXT) == ["Is it so?"]
    assert texts(found, Label.FOOTNOTE) == ["notes", "Confidential"]
    assert found.parts[0].notes == ["not read: 1 ink drawing", "not read: 1 covered cell"]


def test_groups_of_shapes_on_notes_are_read(tmp_path: Path):
    def fill(page: Any) -> None:
        page.notes_slide.notes_text_frame.text = "note"
        page.notes_slide.shapes._spTree.append(
            etree.fromstring(
                f"<p:grpSp {NAMES}><p:nvGrpSpPr><p:cNvPr id='60' name='g'/><p:cNvGrpSpPr/><p:nvPr/></p:nvGrpSpPr>"
                "<p:grpSpPr/><p:sp><p:nvSpPr><p:cNvPr id='61' name='b'/><p:cNvSpPr/><p:nvPr/></p:nvSpPr><p:spPr/>"
                "<p:txBody><a:bodyPr/><a:p><a:r><a:t>in a group</a:t></a:r></a:p></p:txBody></p:sp></p:grpSp>"
            )
        )

    assert texts(slide(tmp_path, fill), Label.FOOTNOTE) == ["note", "in a group"]
