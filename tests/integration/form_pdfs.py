"""PDFs of one page with form fields and annotations, built from their objects: every state that a viewer knows."""

from collections.abc import Sequence
from dataclasses import dataclass, field

HIDDEN, NO_VIEW = 2, 32
MULTI_LINE, PASSWORD, RADIO, COMBO, COMB = 1 << 12, 1 << 13, 1 << 15, 1 << 17, 1 << 24


@dataclass(slots=True)
class FormPage:
    """Collects the objects of a page; :meth:`pdf` writes them."""

    width: int = 595
    height: int = 842
    rotate: int = 0
    need_appearances: bool = False
    xfa: bool = False
    dynamic: bool = False
    """The XFA form has no pages of its own in the PDF."""
    objects: list[bytes] = field(default_factory=list)
    content: list[str] = field(default_factory=list)
    annotations: list[int] = field(default_factory=list)
    fields: list[int] = field(default_factory=list)

    def add(self, body: str | bytes) -> int:
        """Add an object and give its number; the first eight are the page's own."""
        self.objects.append(body.encode("latin-1") if isinstance(body, str) else body)
        return len(self.objects) + 8

    def text(self, x: float, y: float, text: str, size: float = 11, mode: int = 0) -> None:
        """Print text on the page itself."""
        self.content.append(f"BT /Helv {size} Tf {mode} Tr 1 0 0 1 {x} {y} Tm ({text}) Tj ET")

    def draw(self, operators: str) -> None:
        """Add operators to the page's content."""
        self.content.append(operators)

    def form(self, width: float, height: float, operators: str) -> int:
        """Add an appearance stream."""
        return self.add(
            f"<< /Type /XObject /Subtype /Form /BBox [0 0 {width} {height}] /Resources "
            f"<< /Font << /Helv 4 0 R /ZaDb 5 0 R >> >> /Length {len(operators)} >>\nstream\n{operators}\nendstream"
        )

    def annotate(self, subtype: str, box: Sequence[float], entries: str, *, flags: int = 4) -> int:
        """Add an annotation of any kind."""
        rect = " ".join(f"{value:g}" for value in box)
        number = self.add(f"<< /Type /Annot /Subtype /{subtype} /Rect [{rect}] /F {flags} /P 3 0 R {entries} >>")
        self.annotations.append(number)
        if subtype == "Widget":
            self.fields.append(number)
        return number

    def shown(self, text: str, box: Sequence[float], size: float = 11) -> str:
        """The entry of an appearance that shows a text."""
        width, height = box[2] - box[0], box[3] - box[1]
        form = self.form(width, height, f"/Tx BMC q BT /Helv {size} Tf 2 {height / 2 - 4:g} Td ({text}) Tj ET Q EMC")
        return f"/AP << /N {form} 0 R >>"

    def text_field(
        self, name: str, box: Sequence[float], value: str, *, appearance: bool = True, flags: int = 4, kind: int = 0
    ) -> None:
        """Add a text field; ``value`` in PDFDocEncoding, or UTF-16 in hexadecimal between angle brackets."""
        written = value if value.startswith("<") else f"({value})"
        entries = f"/FT /Tx /T ({name}) /V {written} /DA (/Helv 11 Tf 0 g) /Ff {kind} /MK << /BC [0 0 0] >> "
        self.annotate("Widget", box, entries + (self.shown(value, box) if appearance else ""), flags=flags)

    def choice(
        self,
        name: str,
        box: Sequence[float],
        options: Sequence[str],
        value: str,
        *,
        combo: bool,
        appearance: bool = True,
    ) -> None:
        """Add a combo box or a list box."""
        listed = " ".join(f"({option})" for option in options)
        entries = f"/FT /Ch /T ({name}) /Opt [{listed}] /V ({value}) /DA (/Helv 11 Tf 0 g) /Ff {COMBO if combo else 0} "
        self.annotate("Widget", box, entries + (self.shown(value, box) if appearance else ""))

    def check_box(
        self, name: str, box: Sequence[float], *, on: bool, radio: bool = False, appearance: bool = True, flags: int = 4
    ) -> None:
        """Add a check box or a radio button of its own."""
        side = box[3] - box[1]
        state = "/Yes" if on else "/Off"
        entries = (
            f"/FT /Btn /T ({name}) /V {state} /AS {state} /Ff {RADIO if radio else 0} /MK << /BC [0 0 0] /CA (4) >> "
        )
        if appearance:
            frame = f"0.5 0.5 {side - 1:g} {side - 1:g} re S"
            off = self.form(side, side, frame)
            mark = "l" if radio else "4"
            checked = self.form(side, side, f"{frame} BT /ZaDb {side - 2:g} Tf 1 2 Td ({mark}) Tj ET")
            entries += f"/AP << /N << /Yes {checked} 0 R /Off {off} 0 R >> >>"
        self.annotate("Widget", box, entries, flags=flags)

    def free_text(self, box: Sequence[float], text: str, *, appearance: bool = True, flags: int = 4) -> None:
        """Add a FreeText annotation."""
        entries = f"/Contents ({text}) /DA (/Helv 11 Tf 0 g) "
        self.annotate("FreeText", box, entries + (self.shown(text, box) if appearance else ""), flags=flags)

    def pdf(self) -> bytes:
        """The document's bytes."""
        listed = " ".join(f"{number} 0 R" for number in self.annotations)
        fields = " ".join(f"{number} 0 R" for number in self.fields)
        content = "\n".join(self.content).encode("latin-1")
        form = f"/NeedAppearances {str(self.need_appearances).lower()} {'/XFA 8 0 R' if self.xfa else ''}"
        packets = b"<xdp:xdp xmlns:xdp='http://ns.adobe.com/xdp/'><template><subform/></template></xdp:xdp>"
        own = [
            b"<< /Type /Catalog /Pages 2 0 R"
            + (b" /AcroForm 6 0 R" if self.fields or self.xfa else b"")
            + (b" /NeedsRendering true >>" if self.dynamic else b" >>"),
            b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {self.width} {self.height}] /Rotate {self.rotate} "
            f"/Contents 7 0 R /Resources << /Font << /Helv 4 0 R >> >> /Annots [{listed}] >>".encode(),
            b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
            b"<< /Type /Font /Subtype /Type1 /BaseFont /ZapfDingbats >>",
            f"<< /Fields [{fields}] /DA (/Helv 11 Tf 0 g) {form} "
            f"/DR << /Font << /Helv 4 0 R /ZaDb 5 0 R >> >> >>".encode(),
            b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content),
            b"<< /Length %d >>\nstream\n%s\nendstream" % (len(packets), packets),
        ]
        data = bytearray(b"%PDF-1.7\n")
        offsets = []
        for number, body in enumerate([*own, *self.objects], 1):
            offsets.append(len(data))
            data += b"%d 0 obj\n%s\nendobj\n" % (number, body)
        table = len(data)
        data += b"xref\n0 %d\n0000000000 65535 f \n" % (len(offsets) + 1)
        data += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
        data += b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(offsets) + 1, table)
        return bytes(data)
