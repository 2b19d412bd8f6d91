"""What characters are in LaTeX."""

from __future__ import annotations

import unicodedata

_FUNCTION_NAMES = (
    "arccos arcsin arctan arg cos cosh cot coth csc deg det dim exp gcd hom inf ker lg lim liminf limsup ln log max min"
    " Pr sec sin sinh sup tan tanh"
)
FUNCTIONS = frozenset(_FUNCTION_NAMES.split())
"""Words with commands of their own."""
LIMIT_FUNCTIONS = frozenset(["lim", "liminf", "limsup", "max", "min", "sup", "inf", "det", "gcd", "argmax", "argmin"])
"""Functions below which, in a display, their limits stand."""
BIG = frozenset("∑∏∐⋃⋂⨀⨁⨂⨄⨆⋀⋁")
"""Operators above and below which, in a display, their limits stand."""
INTEGRALS = frozenset("∫∬∭∮")
RELATIONS = frozenset("=<>≤≥≠≈≡∼≃≅∝≪≫⊂⊃⊆⊇∈∋∉→←↔⇒⇐⇔↦⩽⩾≲≳≜≐≺≻")
ACCENTS = {
    "\u0302": "hat",
    "\u0303": "tilde",
    "\u0304": "bar",
    "\u0307": "dot",
    "\u0308": "ddot",
    "\u030c": "check",
    "\u0306": "breve",
    "\u0301": "acute",
    "\u0300": "grave",
    "\u030a": "mathring",
    "\u20d7": "vec",
}
LOOKS = {"bold": "b", "bold-italic": "b", "double-struck": "d", "script": "c", "fraktur": "f"}
"""Styles of letters by the names that MathML and Office give to alphabets."""
ROW_END = r" \\ "
WIDE = {"hat": "widehat", "tilde": "widetilde", "bar": "overline", "vec": "overrightarrow"}
OPEN, CLOSE = "([{⟨⌊⌈", ")]}⟩⌋⌉"
FENCES = {"|": "|", "∥": r"\|", "‖": r"\|", "/": "/", "\\": r"\backslash"}
DELIMITERS = {
    "(": "(",
    ")": ")",
    "[": "[",
    "]": "]",
    "{": r"\{",
    "}": r"\}",
    "⟨": r"\langle",
    "⟩": r"\rangle",
    "⌊": r"\lfloor",
    "⌋": r"\rfloor",
    "⌈": r"\lceil",
    "⌉": r"\rceil",
} | FENCES
_ALL_PIECES = zip("()[]{}√", ("⎛⎜⎝", "⎞⎟⎠", "⎡⎢⎣", "⎤⎥⎦", "⎧⎨⎩", "⎫⎬⎭", "⎷"), strict=True)
PIECES = {piece: sign for sign, pieces in _ALL_PIECES for piece in pieces}
"""Pieces of large delimiters and what they are pieces of; ``⎪`` is one of any."""
EXTENSION = "⎪"

_GREEK = (
    "α alpha β beta γ gamma δ delta ϵ epsilon ε varepsilon ζ zeta η eta θ theta ϑ vartheta ι iota κ kappa λ lambda"
    " μ mu µ mu ν nu ξ xi π pi ϖ varpi ρ rho ϱ varrho σ sigma ς varsigma τ tau υ upsilon ϕ phi φ varphi χ chi ψ psi"
    " ω omega Γ Gamma Δ Delta ∆ Delta Θ Theta Λ Lambda Ξ Xi Π Pi Σ Sigma Υ Upsilon ϒ Upsilon Φ Phi Ψ Psi Ω Omega"
    " Ω Omega ǫ epsilon"
)
_SIGNS = (
    "∑ sum ∏ prod ∐ coprod ∫ int ∬ iint ∭ iiint ∮ oint ⋃ bigcup ⋂ bigcap ⨀ bigodot ⨁ bigoplus ⨂ bigotimes"
    " ⨄ biguplus ⨆ bigsqcup ⋀ bigwedge ⋁ bigvee √ surd"
    " ± pm ∓ mp × times ÷ div · cdot ⋅ cdot ∙ cdot • bullet ∘ circ ◦ circ ∗ ast ⋆ star ∩ cap ∪ cup ⊎ uplus ⊓ sqcap"
    " ⊔ sqcup ∨ vee ∧ wedge ∖ setminus ⊕ oplus ⊖ ominus ⊗ otimes ⊘ oslash ⊙ odot † dagger ‡ ddagger ⊢ vdash ⊣ dashv"
    " ⊨ models ⊤ top ⊥ perp"
    " ≤ leq ≥ geq ⩽ leqslant ⩾ geqslant ≠ neq ≡ equiv ∼ sim ≃ simeq ≈ approx ≅ cong ∝ propto ≪ ll ≫ gg ≺ prec ≻ succ"
    " ⪯ preceq ⪰ succeq ≲ lesssim ≳ gtrsim ≜ triangleq ≐ doteq ≍ asymp ⊂ subset ⊃ supset ⊆ subseteq ⊇ supseteq"
    " ⊊ subsetneq ⊏ sqsubset ⊑ sqsubseteq ∈ in ∋ ni ∉ notin ∣ mid ∤ nmid ∥ parallel ‖ parallel ≰ nleq ≱ ngeq"
    " ← leftarrow → to ↔ leftrightarrow ⇐ Leftarrow ⇒ Rightarrow ⇔ Leftrightarrow ↦ mapsto ↪ hookrightarrow"
    " ⟶ longrightarrow ⟵ longleftarrow ⟹ Longrightarrow ⟺ Longleftrightarrow ⟼ longmapsto ↑ uparrow ↓ downarrow"
    " ⇑ Uparrow ⇓ Downarrow ↗ nearrow ↘ searrow ⇀ rightharpoonup ⇌ rightleftharpoons ⇝ rightsquigarrow"
    " ∞ infty ∂ partial ∇ nabla ∀ forall ∃ exists ∄ nexists ¬ neg ∅ emptyset ℜ Re ℑ Im ℓ ell ℏ hbar ħ hbar ℘ wp"
    " ℵ aleph ∠ angle ∡ measuredangle △ triangle ▽ triangledown ′ prime … ldots ⋯ cdots ⋮ vdots ⋱ ddots □ square"
    " ■ blacksquare ◇ diamond ♦ diamondsuit ♯ sharp ♭ flat ♮ natural ∴ therefore ∵ because ı imath ȷ jmath ⊲ lhd ⊳ rhd"
    " ⟨ langle ⟩ rangle 〈 langle 〉 rangle ⌊ lfloor ⌋ rfloor ⌈ lceil ⌉ rceil ≔ coloneqq"
)
_WORDS = f"{_GREEK} {_SIGNS}".split()
_COMMAND = {sign: f"\\{name}" for sign, name in zip(_WORDS[::2], _WORDS[1::2], strict=True)}
_PLAIN = {
    "−": "-",
    "–": "-",
    "‐": "-",
    "∶": ":",
    "′": "'",
    "″": "''",
    "‴": "'''",
    "’": "'",
    "∕": "/",
    "⁄": "/",
    "＝": "=",
    "{": r"\{",
    "}": r"\}",
    "#": r"\#",
    "$": r"\$",
    "%": r"\%",
    "&": r"\&",
    "_": r"\_",
    "\\": r"\backslash",
    "~": r"\sim",
    "^": r"\wedge",
    "°": r"^{\circ}",
    "…": r"\ldots",
}
_STRUCTURES = (
    "frac sqrt binom underline overbrace underbrace operatorname left right not ldots cdots quad qquad backslash"
    " mathrm mathbf mathcal mathbb mathfrak mathsf text tag"
)
_KNOWN = [name[1:] for name in _COMMAND.values()]
COMMANDS = FUNCTIONS.union(_KNOWN, ACCENTS.values(), WIDE.values(), _STRUCTURES.split())
"""All commands that are written here, without their backslash."""
_ALPHABETS = (
    ("MATHEMATICAL BOLD ITALIC ", "b"),
    ("MATHEMATICAL SANS-SERIF BOLD ITALIC ", "b"),
    ("MATHEMATICAL SANS-SERIF BOLD ", "b"),
    ("MATHEMATICAL BOLD SCRIPT ", "c"),
    ("MATHEMATICAL BOLD FRAKTUR ", "f"),
    ("MATHEMATICAL BOLD ", "b"),
    ("MATHEMATICAL ITALIC ", "i"),
    ("MATHEMATICAL SCRIPT ", "c"),
    ("MATHEMATICAL FRAKTUR ", "f"),
    ("MATHEMATICAL DOUBLE-STRUCK ", "d"),
    ("MATHEMATICAL SANS-SERIF ITALIC ", "s"),
    ("MATHEMATICAL SANS-SERIF ", "s"),
    ("MATHEMATICAL MONOSPACE ", "r"),
    ("DOUBLE-STRUCK ", "d"),
    ("SCRIPT ", "c"),
    ("BLACK-LETTER ", "f"),
)
_OF_STYLE = {"b": "mathbf", "c": "mathcal", "d": "mathbb", "f": "mathfrak"}


def letter_of(text: str, style: str) -> tuple[str, str]:
    """A character without the alphabet that Unicode puts it into, and its style."""
    # These have commands of their own; Planck's ℎ is where Unicode left the italic h out of its alphabet.
    if text in "ℓℎℏ℘ℜℑ":
        return ("h", "i") if text == "ℎ" else (text, "r")
    # Nearly all characters are below the letterlike symbols, where no alphabet of mathematics begins.
    if text < "\u2100":
        return text, style
    name = unicodedata.name(text[0], "")
    # Longer names come first in the list: BOLD is how BOLD ITALIC begins.
    for prefix, look in _ALPHABETS:
        if name.startswith(prefix):
            plain = unicodedata.normalize("NFKC", text)
            return ("∇" if "NABLA" in name else "∂" if "PARTIAL" in name else plain), look
    return text, style


def latex_of(text: str, style: str) -> str:
    """One character as LaTeX; one that mathematics does not know as text."""
    if (command := _PLAIN.get(text) or _COMMAND.get(text)) is not None:
        return rf"\mathbf{{{command}}}" if style == "b" and command[:1] == "\\" and text.isalpha() else command
    if text.isascii() and text.isalnum():
        wrapped = _OF_STYLE.get(style)
        if wrapped and (text.isalpha() or style == "b"):
            return rf"\{wrapped}{{{text}}}"
        return text
    if text.isascii() and text.isprintable():
        return text
    return rf"\text{{{text}}}" if text.isprintable() and text != "\ufffd" else ""


def quoted(text: str) -> str:
    """Words inside of a formula; a space where they are white space alone."""
    escaped = "".join(f"\\{char}" if char in "#$%&_{}" else char for char in text)
    return rf"\text{{{escaped}}}" if text.strip() else " "


def accented(name: str, base: str) -> str:
    """An accent over a part of a formula, in its wide form over more than one sign."""
    return rf"\{WIDE.get(name, name) if len(base) > 1 and not base.startswith(chr(92)) else name}{{{base}}}"


def joined(before: str, after: str) -> str:
    """Two pieces of LaTeX one after the other; a command does not run into a letter."""
    tail = before[before.rfind("\\") + 1 :] if "\\" in before else " "
    if after[:1].isalpha() and tail.isalpha() and tail.isascii():
        return f"{before} {after}"
    return before + after
