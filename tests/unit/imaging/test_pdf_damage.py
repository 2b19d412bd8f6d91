"""Damage that PDFium does not tell of: cut content, pages beyond the count."""

import base64
import contextlib
import io
import re
import struct
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pikepdf
import pytest
from made_pdfs import pdf
from PIL import Image

from pagemill.imaging import pdf_damage, stream_check
from pagemill.imaging.jbig2_check import is_whole_jbig2
from pagemill.imaging.limits import DecodeLimits
from pagemill.imaging.pdf import describe, open_pdf, render_page

LINES = b"\n".join(b"BT /F1 12 Tf 72 %d Td (line %d) Tj ET" % (700 - 12 * i, i * 7919) for i in range(50))


def flate(data: bytes, share: float = 1.0, *, flip: int | None = None, checksum: bool = True) -> bytes:
    """Compressed data, cut off or with a bad byte."""
    packed = bytearray(zlib.compress(data))
    if flip is not None:
        packed[flip] ^= 0x55
    return bytes(packed[: int(len(packed) * share) - (0 if checksum else 4)])


def one_page(
    path: Path, content: bytes, filters: str | None = "/FlateDecode", *, image: bytes | None = None, **given: object
) -> Path:
    """A PDF of one page with this content stream as it is, and an image on it, a JPEG unless its entries say else."""
    pdf = pikepdf.new()
    page = pdf.add_blank_page().obj
    page.Contents = pdf.make_stream(content)
    if filters:
        page.Contents.Filter = pikepdf.Name(filters)
    if image is not None:
        picture = pdf.make_stream(image)
        picture.update(
            {
                "/Type": pikepdf.Name.XObject,
                "/Subtype": pikepdf.Name.Image,
                "/Filter": pikepdf.Name.DCTDecode,
                "/Width": 200,
                "/Height": 200,
                "/BitsPerComponent": 8,
                "/ColorSpace": pikepdf.Name.DeviceGray,
                **{f"/{name}": value for name, value in given.items()},
            }
        )
        page.Resources = pikepdf.Dictionary(XObject=pikepdf.Dictionary(I=picture))
    pdf.save(path, compress_streams=False, stream_decode_level=pikepdf.StreamDecodeLevel.none)
    return path


def warnings(path: Path) -> list[str]:
    """Categories of what is wrong with the first page."""
    document = open_pdf(path, None)
    try:
        return [warning.category for warning in render_page(document, 0, DecodeLimits()).warnings]
    finally:
        document.close()


@pytest.mark.parametrize(
    ("content", "filters"),
    [
        (flate(LINES, 0.5), "/FlateDecode"),
        (flate(LINES, flip=5), "/FlateDecode"),
        (flate(LINES, flip=0), "/FlateDecode"),
        (LINES, "/NoSuchDecode"),
    ],
    ids=["cut", "bad byte", "bad header", "unknown filter"],
)
def test_content_that_cannot_be_read_to_its_end_is_a_warning(tmp_path: Path, content: bytes, filters: str):
    assert warnings(one_page(tmp_path / "a.pdf", content, filters)) == ["corrupt"]


@pytest.mark.parametrize(
    ("content", "filters"),
    [(flate(LINES), "/FlateDecode"), (flate(LINES, checksum=False), "/FlateDecode"), (LINES, None), (b"", None)],
    ids=["whole", "without a checksum", "plain", "empty"],
)
def test_sound_content_is_none(tmp_path: Path, content: bytes, filters: str | None):
    assert warnings(one_page(tmp_path / "a.pdf", content, filters)) == []


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        (b"", b"", []),
        (b"0000000185 ", b"0000000009 ", ["corrupt"]),  # PDFium takes it for one that does not exist
        (b"4 0 obj\n<<", b"4 0 obj\n}}", ["corrupt"]),
    ],
    ids=["sound", "not at its place", "damaged"],
)
def test_content_that_is_no_object_for_pdfium_is_a_warning(
    tmp_path: Path, before: bytes, after: bytes, found: list[str]
):
    stream = b"<</Length %d>>stream\n%s\nendstream" % (len(LINES), LINES)
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R>>"
    data = pdf(b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[3 0 R]/Count 1>>", page, stream)
    assert before in data
    (tmp_path / "a.pdf").write_bytes(data.replace(before, after, 1))
    assert warnings(tmp_path / "a.pdf") == found


def test_an_empty_page_without_resources_is_sound(tmp_path: Path):
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]>>"
    tree = b"<</Type/Pages/Kids[3 0 R]/Count 1>>"
    (tmp_path / "a.pdf").write_bytes(pdf(b"<</Type/Catalog/Pages 2 0 R>>", tree, page))
    assert warnings(tmp_path / "a.pdf") == []


@pytest.mark.parametrize(("share", "found"), [(1.0, []), (0.5, ["corrupt"])])
def test_an_image_that_breaks_off_is_a_warning(tmp_path: Path, share: float, found: list[str]):
    buffer = io.BytesIO()
    Image.effect_noise((200, 200), 90).save(buffer, "JPEG")
    jpeg = buffer.getvalue()
    content = b"q 500 0 0 500 50 50 cm /I Do Q"
    assert warnings(one_page(tmp_path / "a.pdf", content, None, image=jpeg[: int(len(jpeg) * share)])) == found


def test_an_image_that_lacks_only_its_end_marker_is_whole(tmp_path: Path):
    buffer = io.BytesIO()
    Image.effect_noise((200, 200), 90).save(buffer, "JPEG")
    content = b"q 500 0 0 500 50 50 cm /I Do Q"
    assert warnings(one_page(tmp_path / "a.pdf", content, None, image=buffer.getvalue()[:-2])) == []


@pytest.mark.parametrize("filters", ["/JPXDecode", "/JBIG2Decode", "/DCTDecode"])
@pytest.mark.parametrize("stamp", [b"", b" 72 60 90 12 re f"], ids=["empty", "stamped"])
def test_an_image_that_cannot_be_decoded_is_a_warning(tmp_path: Path, filters: str, stamp: bytes):
    content = b"q 500 0 0 500 50 50 cm /I Do Q" + stamp
    image = b"\xff\x00garb" * 300 + b"\xff\xd9"
    page = one_page(tmp_path / "a.pdf", content, None, image=image, Filter=pikepdf.Name(filters))
    assert warnings(page) == ["corrupt"]


@pytest.mark.parametrize(
    ("lost", "parameters", "found"),
    [(0, {}, []), (3, {"EndOfBlock": False}, []), (500, {}, ["corrupt"])],
    ids=["whole", "without an end marker, as announced", "cut"],
)
def test_an_image_in_group_4_ends_with_its_marker(
    tmp_path: Path, lost: int, parameters: dict[str, object], found: list[str]
):
    buffer = io.BytesIO()
    Image.effect_noise((200, 200), 90).convert("1").save(buffer, "TIFF", compression="group4", strip_size=2**20)
    with Image.open(buffer) as tiff:
        start, length = tiff.tag_v2[273][0], tiff.tag_v2[279][0]
    fax = buffer.getvalue()[start : start + length - lost]
    page = one_page(
        tmp_path / "a.pdf",
        b"q 500 0 0 500 50 50 cm /I Do Q",
        None,
        image=fax,
        Filter=pikepdf.Name.CCITTFaxDecode,
        BitsPerComponent=1,
        DecodeParms=pikepdf.Dictionary(K=-1, Columns=200, Rows=200, **parameters),
    )
    assert warnings(page) == found


def test_pages_beyond_the_page_count_are_announced(tmp_path: Path):
    pdf = pikepdf.new()
    for _ in range(4):
        pdf.add_blank_page()
    buffer = io.BytesIO()
    pdf.save(buffer, object_stream_mode=pikepdf.ObjectStreamMode.disable)
    path = tmp_path / "a.pdf"
    path.write_bytes(re.sub(rb"/Count 4", b"/Count 2", buffer.getvalue()))
    document = open_pdf(path, None)
    try:
        info = describe(document)
    finally:
        document.close()
    assert (info.page_count, info.announced) == (2, 4)


@pytest.mark.parametrize(
    ("error", "found"), [(pikepdf.PdfError("unable to find page tree"), ["corrupt"]), (pikepdf.PasswordError(), [])]
)
def test_what_qpdf_does_not_open_is_damaged(
    tmp_path: Path, error: Exception, found: list[str], monkeypatch: pytest.MonkeyPatch
):
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(pikepdf, "open", fail)
    assert warnings(one_page(tmp_path / "page.pdf", flate(LINES))) == found


@pytest.mark.parametrize("error", [RuntimeError("INTERNAL ERROR"), MemoryError()])
@pytest.mark.parametrize(("owner", "name"), [(pikepdf, "open"), (pdf_damage, "decoded")])
def test_a_page_is_rendered_whatever_becomes_of_the_check(
    tmp_path: Path, owner: object, name: str, error: Exception, monkeypatch: pytest.MonkeyPatch
):
    path = one_page(tmp_path / "page.pdf", flate(LINES))

    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(owner, name, fail)
    with open_pdf(path, None) as document:
        assert describe(document).page_count == 1
        assert not render_page(document, 0, DecodeLimits()).warnings


NOISE = Image.effect_noise((200, 200), 90)
IMAGE = b"q 500 0 0 500 50 50 cm /I Do Q"


def encoded(file_format: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    mode = {"TIFF": "1"}.get(file_format, str(options.pop("mode", "L")))
    NOISE.convert(mode).save(buffer, file_format, **options)
    return buffer.getvalue()


def fax(compression: str) -> bytes:
    data = encoded("TIFF", compression=compression, strip_size=2**20)
    with Image.open(io.BytesIO(data)) as tiff:
        return data[tiff.tag_v2[273][0] :][: tiff.tag_v2[279][0]]


def lzw(data: bytes) -> bytes:
    """Data in 9-bit codes of single bytes, the table cleared before it has more than fit into 9 bits."""
    codes = []
    for start in range(0, len(data), 200):
        codes += [256, *data[start : start + 200]]
    bits = "".join(f"{code:09b}" for code in [*codes, 257])
    return int(bits.ljust(-(-len(bits) // 8) * 8, "0"), 2).to_bytes(-(-len(bits) // 8), "big")


def run_length(data: bytes) -> bytes:
    return b"".join(bytes([len(part) - 1]) + part for part in re.findall(rb"[\s\S]{1,128}", data)) + b"\x80"


@pytest.mark.parametrize(
    ("pack", "filters"),
    [
        (lambda data: base64.a85encode(zlib.compress(data), adobe=True)[2:], ["ASCII85Decode", "FlateDecode"]),
        (lambda data: zlib.compress(zlib.compress(data)), ["FlateDecode", "FlateDecode"]),
        (lambda data: zlib.compress(data).hex().encode() + b">", ["ASCIIHexDecode", "FlateDecode"]),
        (lzw, ["LZWDecode"]),
        (run_length, ["RunLengthDecode"]),
        (lambda data: data.hex().encode() + b">", ["ASCIIHexDecode"]),
        (lambda data: base64.a85encode(data) + b"~>", ["ASCII85Decode"]),
    ],
    ids=["ASCII85 and Flate", "Flate twice", "hex and Flate", "LZW", "run length", "hex", "ASCII85"],
)
@pytest.mark.parametrize(("lost", "found"), [(0, []), (40, ["corrupt"])])
def test_all_filters_of_a_chain_are_decoded_to_their_end(
    tmp_path: Path, pack: Callable[[bytes], bytes], filters: list[str], lost: int, found: list[str]
):
    data = pack(LINES)
    page = one_page(tmp_path / "a.pdf", data[: len(data) - lost], None)
    with pikepdf.open(page, allow_overwriting_input=True) as pdf:
        pdf.pages[0].obj.Contents.Filter = pikepdf.Array([pikepdf.Name(f"/{name}") for name in filters])
        pdf.save(page, compress_streams=False, stream_decode_level=pikepdf.StreamDecodeLevel.none)
    assert warnings(page) == found


def test_a_hole_and_a_wrong_checksum_are_warnings(tmp_path: Path):
    packed = bytearray(zlib.compress(LINES, 0))  # stored as it is: nothing but the checksum notices
    packed[100:110] = bytes(10)
    assert warnings(one_page(tmp_path / "a.pdf", bytes(packed))) == ["corrupt"]


@pytest.mark.parametrize(
    "way", ["inherited", "nested", "pattern", "annotation", "soft mask", "glyph", "many", "unused"]
)
@pytest.mark.parametrize("share", [1.0, 0.5])
def test_all_that_a_page_draws_is_checked(tmp_path: Path, way: str, share: float):
    pdf = pikepdf.new()
    page = pdf.add_blank_page().obj
    box = pikepdf.Array([0, 0, 612, 792])
    form = {"Type": pikepdf.Name.XObject, "Subtype": pikepdf.Name.Form, "BBox": box}
    damaged = pikepdf.Stream(pdf, flate(LINES, share), Filter=pikepdf.Name.FlateDecode, **form)
    drawn = pdf.make_indirect(damaged)
    content, resources = b"/A#20B Do", pikepdf.Dictionary({"/XObject": pikepdf.Dictionary({"/A B": drawn})})
    if way == "inherited":
        del page.Resources
        pdf.Root.Pages.Resources = resources
    elif way == "nested":
        outer = pikepdf.Stream(pdf, b"/A#20B Do", Resources=resources, **form)
        page.Resources = pikepdf.Dictionary(XObject=pikepdf.Dictionary(F=outer))
        content = b"/F Do"
    elif way == "pattern":
        damaged.PatternType = 1
        page.Resources = pikepdf.Dictionary(Pattern=pikepdf.Dictionary(P=drawn))
        content = b"/Pattern cs /P scn 0 0 9 9 re f"
    elif way == "annotation":
        page.Annots = pikepdf.Array([pikepdf.Dictionary(Rect=box, AP=pikepdf.Dictionary(N=drawn))])
        content = b""
    elif way == "soft mask":
        mask = pikepdf.Dictionary(SMask=pikepdf.Dictionary(S=pikepdf.Name.Luminosity, G=drawn))
        page.Resources = pikepdf.Dictionary(ExtGState=pikepdf.Dictionary(G=mask))
        content = b"/G gs 0 0 9 9 re f"
    elif way == "glyph":
        font = {"Type": pikepdf.Name.Font, "Subtype": pikepdf.Name.Type3, "CharProcs": pikepdf.Dictionary(a=drawn)}
        page.Resources = pikepdf.Dictionary(Font=pikepdf.Dictionary(F=pikepdf.Dictionary(**font)))
        content = b"BT /F 9 Tf (a) Tj ET"
    elif way == "many":
        sound = {f"/F{number}": pikepdf.Stream(pdf, b"", **form) for number in range(70)}
        page.Resources = pikepdf.Dictionary(XObject=pikepdf.Dictionary({**sound, "/Z": drawn}))
        content = b" ".join(b"/F%d Do" % number for number in range(70)) + b" /Z Do"
    else:
        page.Resources = resources
        content = b"/Other Do"
    page.Contents = pdf.make_stream(content)
    pdf.save(tmp_path / "a.pdf", compress_streams=False, stream_decode_level=pikepdf.StreamDecodeLevel.none)
    assert warnings(tmp_path / "a.pdf") == ([] if share == 1 or way == "unused" else ["corrupt"])


@pytest.mark.parametrize(("share", "found"), [(1.0, []), (0.5, ["corrupt"])])
def test_inline_images_are_checked(tmp_path: Path, share: float, found: list[str]):
    data = flate(NOISE.tobytes(), share)
    image = b"q 99 0 0 99 0 0 cm BI /W 200 /H 200 /BPC 8 /CS /G /F /Fl ID " + data + b"\nEI Q\n"
    assert warnings(one_page(tmp_path / "a.pdf", LINES + b"\n" + image + LINES, None)) == found


@pytest.mark.parametrize("mode", ["L", "RGB", "CMYK"])
@pytest.mark.parametrize("progressive", [False, True])
@pytest.mark.parametrize("damage", ["none", "zeros", "first scan"])
def test_a_jpeg_is_decoded_to_its_end(tmp_path: Path, mode: str, progressive: bool, damage: str):
    jpeg = encoded("JPEG", mode=mode, progressive=progressive)
    half, second = len(jpeg) // 2, [match.start() for match in re.finditer(rb"\xff\xda", jpeg)][1:2]
    if damage == "zeros":
        jpeg = jpeg[:half] + bytes(len(jpeg) - half - 2) + jpeg[-2:]
    elif damage == "first scan" and second:
        jpeg = jpeg[: second[0]] + jpeg[-2:]
    space = {"L": pikepdf.Name.DeviceGray, "RGB": pikepdf.Name.DeviceRGB, "CMYK": pikepdf.Name.DeviceCMYK}[mode]
    is_sound = damage == "none" or (damage == "first scan" and not progressive)
    page = one_page(tmp_path / "a.pdf", IMAGE, None, image=jpeg, ColorSpace=space)
    assert warnings(page) == ([] if is_sound else ["corrupt"])


@pytest.mark.parametrize("compression", ["group3", "group4"])
@pytest.mark.parametrize("has_end", [True, False])
@pytest.mark.parametrize("damage", ["none", "cut", "hole"])
def test_a_fax_is_decoded_to_its_end(tmp_path: Path, compression: str, has_end: bool, damage: str):
    data = bytearray(fax(compression))
    if damage == "cut":
        del data[len(data) // 2 :]
    elif damage == "hole":
        data[len(data) // 2 :][:64] = bytes(64)
        data[len(data) // 2 : len(data) // 2 + 64] = bytes(64)
    given = {"Filter": pikepdf.Name.CCITTFaxDecode, "BitsPerComponent": 1}
    kind = pikepdf.Dictionary(
        K=-1 if compression == "group4" else 0, Columns=200, Rows=200, EndOfBlock=has_end, BlackIs1=True
    )
    page = one_page(tmp_path / "a.pdf", IMAGE, None, image=bytes(data), DecodeParms=kind, **given)
    assert warnings(page) == ([] if damage == "none" else ["corrupt"])


@pytest.mark.parametrize(("lost", "found"), [(0, []), (300, ["corrupt"])])
def test_a_jpeg_2000_image_is_whole_in_structure(tmp_path: Path, lost: int, found: list[str]):
    data = encoded("JPEG2000")
    image = data[: len(data) - lost]
    assert warnings(one_page(tmp_path / "a.pdf", IMAGE, None, image=image, Filter=pikepdf.Name.JPXDecode)) == found


def test_a_jpeg_2000_image_is_not_decoded_at_its_full_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = io.BytesIO()  # its sides are rounded in two ways at 1/32 and 1/16 of its size
    Image.new("L", (502, 834), 99).save(file, "JPEG2000", irreversible=True)
    monkeypatch.setattr(stream_check, "_SAMPLES_OF_JPX", 502 * 834 // 4)
    path = one_page(tmp_path / "a.pdf", IMAGE, None, image=file.getvalue(), Filter=pikepdf.Name.JPXDecode)
    with open_pdf(path, None) as document:
        page = render_page(document, 0, DecodeLimits())
    assert (page.notes, page.warnings) == ((), ())


@pytest.mark.parametrize(("computed", "is_given_up"), [(0.0, False), (99.0, True)])
def test_the_check_is_limited_in_processor_time(monkeypatch: pytest.MonkeyPatch, computed: float, is_given_up: bool):
    budget = stream_check.Budget()
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + 99, thread_time=lambda: time.thread_time() + computed)
    monkeypatch.setattr(stream_check, "time", clock)
    with pytest.raises(stream_check.UncheckedError) if is_given_up else contextlib.nullcontext():
        budget.take(1)


def segment(number: int, kind: int, data: bytes, *referred: int) -> bytes:
    return (
        struct.pack(">IBB", number, kind, len(referred) << 5)
        + bytes([*referred, 1])
        + struct.pack(">I", len(data))
        + data
    )


@pytest.mark.parametrize(
    ("data", "is_whole"),
    [
        (segment(0, 48, bytes(19)) + segment(1, 38, bytes(90)), True),
        (segment(0, 48, bytes(19)) + segment(1, 38, bytes(90))[:-20], False),
        (segment(0, 48, bytes(19)), False),
        (segment(0, 48, bytes(19)) + segment(1, 6, bytes(90), 9), True),
        (segment(0, 48, bytes(19)) + segment(1, 6, bytes(90), 8), False),
        (segment(0, 48, bytes(19)) + segment(1, 5, bytes(90)), False),
    ],
    ids=["whole", "cut", "no region", "refers to a global one", "refers to none", "unknown kind"],
)
def test_the_segments_of_a_jbig2_image_are_there(data: bytes, is_whole: bool):
    assert is_whole_jbig2(segment(9, 0, bytes(30)), data) is is_whole


def test_a_damaged_object_stream_is_a_warning_of_all_pages(tmp_path: Path):
    path = tmp_path / "a.pdf"
    pdf = pikepdf.new()
    for _ in range(3):
        pdf.add_blank_page().obj.Contents = pdf.make_stream(LINES)
    pdf.save(path, object_stream_mode=pikepdf.ObjectStreamMode.generate)
    assert warnings(path) == []
    data = bytearray(path.read_bytes())
    start = data.index(b"stream", data.index(b"/ObjStm")) + 7
    end = data.index(b"endstream", start)
    data[end - 3] ^= 1  # of the checksum
    path.write_bytes(data)
    assert warnings(path) == ["corrupt"]


def test_contents_that_name_a_missing_object_are_a_warning(tmp_path: Path):
    tree = b"<</Type/Pages/Kids[3 0 R]/Count 1>>"
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 99 0 R>>"
    (tmp_path / "a.pdf").write_bytes(pdf(b"<</Type/Catalog/Pages 2 0 R>>", tree, page))
    assert warnings(tmp_path / "a.pdf") == ["corrupt"]


@pytest.mark.parametrize(("name", "found"), [(b"I", ["corrupt"]), (b"Other", [])])
def test_a_resource_that_is_used_and_missing_is_a_warning(tmp_path: Path, name: bytes, found: list[str]):
    tree = b"<</Type/Pages/Kids[3 0 R]/Count 1/MediaBox[0 0 612 792]>>"
    page = b"<</Type/Page/Parent 2 0 R/Resources<</XObject<</I 99 0 R>>>>/Contents 4 0 R>>"
    content = b"<</Length %d>>stream\n/%s Do\nendstream" % (len(name) + 4, name)
    (tmp_path / "a.pdf").write_bytes(pdf(b"<</Type/Catalog/Pages 2 0 R>>", tree, page, content))
    assert warnings(tmp_path / "a.pdf") == found


@pytest.mark.parametrize(("share", "found"), [(1.0, []), (0.5, ["corrupt"])])
def test_an_update_that_breaks_off_is_a_warning(tmp_path: Path, share: float, found: list[str]):
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R>>"
    base = pdf(
        *(b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[3 0 R]/Count 1>>", page),
        b"<</Length %d>>stream\n%s\nendstream" % (len(LINES), LINES),
    )
    update = b"\n4 0 obj\n<</Length 12>>stream\n0 0 9 9 re f\nendstream\nendobj\n"
    start = len(base) + 1
    previous = base[base.rindex(b"startxref") :].split()[1]
    table = b"xref\n4 1\n%010d 00000 n \ntrailer<</Size 5/Root 1 0 R/Prev %s>>\nstartxref\n%d\n%%%%EOF"
    update += table % (start, previous, len(base) + len(update))
    (tmp_path / "a.pdf").write_bytes(base + update[: int(len(update) * share)])
    assert warnings(tmp_path / "a.pdf") == found


def test_a_bomb_is_not_decoded_to_its_end(tmp_path: Path):
    bomb = zlib.compress(zlib.compress(bytes(2**28 + 2**20), 1), 1)
    path = one_page(tmp_path / "a.pdf", IMAGE, None, image=bomb)
    with pikepdf.open(path, allow_overwriting_input=True) as document:
        image = document.pages[0].obj.Resources.XObject.I
        image.Filter = pikepdf.Array([pikepdf.Name.FlateDecode, pikepdf.Name.FlateDecode])
        document.save(path, compress_streams=False, stream_decode_level=pikepdf.StreamDecodeLevel.none)
    with open_pdf(path, None) as document:
        page = render_page(document, 0, DecodeLimits())
    assert any("cannot be checked" in note for note in page.notes)
