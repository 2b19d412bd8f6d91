"""Small PDFs by hand, sound ones and liars."""

from collections.abc import Sequence

PAGE = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]/Resources<<>>>>"


def pdf(*objects: bytes, trailer: bytes = b"") -> bytes:
    """A PDF of these objects, numbered from 1; the first one is the catalogue. ``trailer``: more of its entries."""
    data = bytearray(b"%PDF-1.4\n")
    offsets = []
    for number, content in enumerate(objects, 1):
        offsets.append(len(data))
        data += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    start = len(data)
    data += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    for offset in offsets:
        data += b"%010d 00000 n \n" % offset
    data += b"trailer<</Size %d/Root 1 0 R%s>>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, trailer, start)
    return bytes(data)


def page_tree(kids: str, count: int, *objects: bytes) -> bytes:
    """A PDF with these children of the page tree's root; object 3 is a page, ``objects`` follow it."""
    root = b"<</Type/Pages/Kids[%s]/Count %d>>" % (kids.encode(), count)
    return pdf(b"<</Type/Catalog/Pages 2 0 R>>", root, PAGE, *objects)


def pages(count: int, *, widths: Sequence[int] = ()) -> bytes:
    """A sound PDF whose pages, objects 3 and following, differ in width."""
    kids = " ".join(f"{number} 0 R" for number in range(3, 3 + count))
    sizes = widths or range(200, 200 + count)
    made = [b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 %d 200]/Resources<<>>>>" % width for width in sizes]
    root = b"<</Type/Pages/Kids[%s]/Count %d>>" % (kids.encode(), count)
    return pdf(b"<</Type/Catalog/Pages 2 0 R>>", root, *made)
