"""Whether LaTeX renders: a strict parser of the part of it that formulas here are written in."""

from __future__ import annotations

from collections.abc import Iterator

from pagemill.formulas.signs import COMMANDS
from pagemill.late import re

_TOKEN = re.compile(r"\\([A-Za-z]+)|\\(.)|([{}_^&$%#~])|([^\\{}_^&$%#~\s])|\s+", re.DOTALL)
_ONE_ARGUMENT = (
    "mathit mathtt mathscr boldsymbol bm mathop mathrel mathbin mathord mathopen mathclose mathpunct mathinner boxed"
    " cancel bcancel xcancel phantom hphantom vphantom smash overleftarrow overleftrightarrow underbar pmod pod"
    " xrightarrow xleftarrow mod"
    " hat tilde bar dot ddot check breve acute grave mathring vec widehat widetilde overline overrightarrow underline"
    " overbrace underbrace operatorname mathrm mathbf mathcal mathbb mathfrak mathsf text tag"
)
_TWO_ARGUMENTS = "frac dfrac tfrac cfrac binom dbinom tbinom stackrel overset underset"
_TEXT = frozenset(["text", "tag", "textbf", "textit", "textrm", "textsf", "texttt", "mbox", "operatorname"])
_ARGUMENTS = dict.fromkeys(_TWO_ARGUMENTS.split(), 2) | {"sqrt": 1} | dict.fromkeys(_ONE_ARGUMENT.split(), 1)
_ENVIRONMENT_NAMES = (
    "matrix pmatrix bmatrix Bmatrix vmatrix Vmatrix smallmatrix cases rcases aligned gathered split array"
)
_ENVIRONMENTS = frozenset(_ENVIRONMENT_NAMES.split())
_DELIMITER_NAMES = (
    "langle rangle lfloor rfloor lceil rceil backslash uparrow downarrow updownarrow Uparrow Downarrow Updownarrow"
    " lvert rvert lVert rVert vert Vert lbrace rbrace lbrack rbrack lgroup rgroup ulcorner urcorner llcorner lrcorner"
)
DELIMITERS = frozenset(_DELIMITER_NAMES.split())
SIZES = frozenset(f"{size}{side}" for size in ("big", "Big", "bigg", "Bigg") for side in ("", "l", "r", "m"))
_OTHERS = (
    "le ge ne rightarrow longrightarrow gets land lor lnot varnothing complement ltimes rtimes dots dotsc dotsb dotsm"
    " dotsi cdotp colon bmod iff implies impliedby owns hslash varkappa digamma bigtriangleup bigtriangledown wr amalg"
    " checkmark smile frown bowtie vDash Vdash Vvdash preccurlyeq succcurlyeq trianglelefteq trianglerighteq"
    " triangleleft triangleright vartriangleleft vartriangleright subseteqq supseteqq supsetneq subsetneqq sqsupset"
    " sqsupseteq nsubseteq leqq geqq lessgtr gtrless lesseqgtr lessapprox gtrapprox eqsim approxeq backsim thicksim"
    " thickapprox leftharpoonup leftharpoondown rightharpoondown upharpoonright upharpoonleft leftrightharpoons"
    " leftrightarrows rightleftarrows rightrightarrows twoheadrightarrow rightarrowtail circlearrowleft"
    " circlearrowright curvearrowleft curvearrowright hookleftarrow longleftrightarrow Longleftarrow searrow swarrow"
    " nwarrow leadsto diamond Diamond Box lozenge clubsuit heartsuit spadesuit bigstar boxplus boxtimes boxdot"
    " divideontimes circledast circledcirc barwedge veebar curlywedge curlyvee doublecap doublecup injlim projlim"
    " varlimsup varliminf displaystyle textstyle scriptstyle scriptscriptstyle limits nolimits hline rm bf it sf tt cal"
    " nonumber notag substack thinspace medspace thickspace negthinspace enspace enskip quad qquad space middle"
    " backprime varGamma varDelta varTheta varLambda varXi varPi varSigma varUpsilon varPhi varPsi varOmega beth gimel"
    " daleth eth S P copyright pounds degree sphericalangle nmid nparallel nprec nsucc nless ngtr ncong nsim"
)
"""What models write and nobody here does; KaTeX knows all of it."""
KNOWN = COMMANDS.union(_ARGUMENTS, DELIMITERS, SIZES, _OTHERS.split())
_COLUMNS = re.compile(r"\s*(?:\[[tcb]\]\s*)?\{[lcr|\s]*\}")
_SPACE = re.compile(r"\s*\{\s*-?\s*[\d.]+\s*(?:em|ex|cm|mm|in|pt|mu)\s*\}")
_NAME = re.compile(r"\s*\{\s*([a-zA-Z]+)\s*\}")
_GROUP = re.compile(r"\*?\s*\{((?:[^\\{}$&#^_%]|\\[{}#$%&_ ,;:!])*)\}")
_ESCAPES = frozenset("{}#$%&_|,;:!> \\")
_MOST = 20_000
_DEEPEST = 60


def renders(latex: str) -> bool:
    """Whether all commands are known and have their arguments, and all groups, pairs and environments close."""
    if not latex.strip() or len(latex) > _MOST:
        return False
    try:
        parser = _Parser(latex)
        parser.sequence(0, "")
    except (_BadError, StopIteration):
        return False
    return parser.next is None


class _BadError(Exception):
    """The LaTeX is invalid."""


class _Parser:
    def __init__(self, latex: str) -> None:
        self._tokens: Iterator[tuple[str, str]] = _tokens(latex)
        self.next: tuple[str, str] | None = None
        self._step()

    def _step(self) -> tuple[str, str] | None:
        now, self.next = self.next, next(self._tokens, None)
        return now

    def sequence(self, depth: int, until: str) -> None:
        """Parse up to the end of a group, pair or environment, which is not consumed."""
        scripted: set[str] = set()
        started = False
        while self.next is not None and self.next != ("special", "}") and self.next[0] != "end":
            kind, text = self.next
            if (kind, text) == ("command", "right"):
                break
            if kind == "special" and text in "_^":
                self._step()
                if text in scripted:
                    raise _BadError  # a double subscript
                scripted.add(text)
                self._argument(depth)
                continue
            scripted = set() if text != "'" else {"^"}
            if kind == "special" and text not in "{&~":
                raise _BadError
            # TeX knows columns and rows inside of an environment only, and stops at a stray `&`.
            if (kind, text) in (("special", "&"), ("escape", "\\")) and not until:
                raise _BadError
            started = True
            self._item(depth)
        if not started and not until and depth == 0:
            raise _BadError

    def _item(self, depth: int) -> None:
        if depth > _DEEPEST:
            raise _BadError
        token = self._step()
        assert token is not None
        kind, text = token
        if (kind, text) == ("special", "{"):
            self.sequence(depth + 1, "")
            self._expect("special", "}")
        elif kind == "command":
            self._command(text, depth)
        elif kind == "begin":
            if text not in _ENVIRONMENTS:
                raise _BadError
            self.sequence(depth + 1, text)
            self._expect("end", text)
        elif kind == "escape" and text not in _ESCAPES:
            raise _BadError

    def _command(self, name: str, depth: int) -> None:
        if name not in KNOWN or name == "right":
            raise _BadError
        if name in SIZES or name == "middle":
            self._delimiter()
            return
        if name == "substack":
            self._expect("special", "{")
            self.sequence(depth + 1, name)
            self._expect("special", "}")
            return
        if name == "left":
            self._delimiter()
            self.sequence(depth + 1, "")
            self._expect("command", "right")
            self._delimiter()
            return
        # The index of a root stands between brackets, which are ordinary characters anywhere else.
        if name == "sqrt" and self.next == ("char", "["):
            self._step()
            while self.next is not None and self.next != ("char", "]"):
                self._item(depth + 1) if self.next[1] not in "_^" else self._step()
            self._expect("char", "]")
        for _ in range(_ARGUMENTS.get(name, 0)):
            self._argument(depth)

    def _argument(self, depth: int) -> None:
        if self.next is None or self.next[0] == "end" or self.next in (("special", "}"), ("command", "right")):
            raise _BadError
        if self.next[0] == "special" and self.next[1] != "{":
            raise _BadError
        self._item(depth + 1)

    def _delimiter(self) -> None:
        token = self._step()
        known = token is not None and (
            (token[0] == "char" and token[1] in "()[]|/.<>")
            or (token[0] == "escape" and token[1] in "{}|")
            or (token[0] == "command" and token[1] in DELIMITERS)
        )
        if not known:
            raise _BadError

    def _expect(self, kind: str, text: str) -> None:
        if self._step() != (kind, text):
            raise _BadError


def _tokens(latex: str) -> Iterator[tuple[str, str]]:
    """Commands, escapes, special characters and plain ones; the content of text commands as one plain one."""
    place = 0
    while place < len(latex):
        match = _TOKEN.match(latex, place)
        if match is None:
            raise _BadError
        place = match.end()
        name, escape, special, char = match.groups()
        if name in ("begin", "end"):
            environment = _NAME.match(latex, place)
            # Only `array` has a column specification; without one it would take its first cell for it.
            columns = _COLUMNS.match(latex, environment.end()) if environment and environment[1] == "array" else None
            if environment is None or (name == "begin" and environment[1] == "array" and columns is None):
                raise _BadError
            place = (columns if columns and name == "begin" else environment).end()
            yield name, environment[1]
        elif name == "hspace":
            space = _SPACE.match(latex, place)
            if space is None:
                raise _BadError
            place = space.end()
            yield "char", " "
        # Inside of text there is no mathematics: commands are unknown there, and `_` or `%` must be escaped.
        elif name in _TEXT:
            group = _GROUP.match(latex, place)
            if group is None:
                raise _BadError
            place = group.end()
            yield "char", "text"
        elif name is not None:
            yield "command", name
        elif escape is not None:
            yield "escape", escape
        elif special is not None:
            yield "special", special
        elif char is not None:
            yield "char", char
