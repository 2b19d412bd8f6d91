"""Records as data: what earlier versions wrote can still be read."""

import msgspec

from pagemill.document.page import SCHEMA_VERSION, ContentFormat, PageResult

WRITTEN_AS_1_2 = b"""{"page_id":"a_1","page_idx":0,"regions":[{"index":0,"label":"text","bbox_2d":[0,0,500,500],
"content":"Words.","bbox":[0.0,0.0,50.0,50.0],"polygon":null,"score":0.9,"source":"fast","engine":"vlm:glm-ocr",
"content_format":"markdown","confidence":null,"level":null,"list_item":false,"caption_of":null,"continues":false,
"lines":[]}],"markdown":"Words.","image_crops":[],"doc_id":"a","source":"a.png","page_number":1,"width":100,"height":100,
"scale":1.0,"dpi":null,"rotation":0,"page_key":"0/1","status":"done","attempts":2,"errors":[],"languages":[],
"text_source":"ocr","timings":{},"metadata":{},"schema_version":"1.2"}"""


def test_a_record_of_1_2_is_read():
    record = msgspec.json.decode(WRITTEN_AS_1_2, type=PageResult)
    assert (record.schema_version, SCHEMA_VERSION) == ("1.2", "1.7")
    (region,) = record.regions
    assert (region.content, region.content_format, region.attempts) == ("Words.", ContentFormat.MARKDOWN, 1)
