"""The LaTeX commands allowed in formulas, and their form for TeX."""

from __future__ import annotations

from pagemill.formulas.signs import FUNCTIONS, LIMIT_FUNCTIONS

_FONT_NAMES = "mathrm mathbf mathit mathsf mathtt mathnormal mathbb mathcal mathfrak boldsymbol"
_TEMPLATES = r"""
@\*{#} | hat tilde bar dot ddot dddot check breve acute grave mathring vec widehat widetilde overline underline
@\*{#} | overrightarrow overleftarrow overleftrightarrow underrightarrow underleftarrow underleftrightarrow overbrace
@\*{#} | underbrace boxed pmod pod mod
@\overline{#} | cancel bcancel xcancel sout overgroup
@\underline{#} | underbar undergroup
@\boxed{#} | fbox textcircled
@\*{#}{#} | frac dfrac tfrac cfrac binom dbinom tbinom
@\*[#]{#} | sqrt xrightarrow xleftarrow
@\xrightarrow[#]{#} | xleftrightarrow xRightarrow xLeftarrow xlongequal xmapsto xhookrightarrow
\*{#}{#} | overset underset
\overset{#}{#} | stackrel
\*{#} | mathop mathrel mathbin mathord mathopen mathclose mathpunct mathinner phantom hphantom vphantom smash
\*{#} | mathrm mathbf mathit mathsf mathtt mathnormal mathbb mathcal mathfrak boldsymbol
\mathcal{#} | mathscr
\mathbb{#} | mathds mathbbm Bbb
\mathfrak{#} | frak
\mathbf{#} | bold
\boldsymbol{#} | bm pmb
{#} | ensuremath mathclap mathllap mathrlap substack vcenter
\* | quad qquad enspace enskip thinspace medspace thickspace negthinspace space displaystyle textstyle scriptstyle
\* | scriptscriptstyle , : > ; !
 | nonumber notag hline hdashline allowbreak nobreak strut mathstrut null
 | tiny small normalsize large Large huge centering displaylimits
! | label tag color cline ref
!! | rule
!{#} | textcolor colorbox raisebox
!!{#} | multicolumn multirow
@< | lt
@> | gt
@:= | coloneqq
@\times | * bigtimes
@{{}^{\circ}} | degree textdegree
@\dagger | dag
@\ddagger | ddag
@/ | slash
@\text{\AA} | AA
@\text{\rule{1em}{.8em}} | copyright permil textperthousand textregistered
@\* | Bumpeq Cap Cup Doteq Finv Game Lleftarrow Lsh Rrightarrow Rsh Subset Supset backepsilon backsimeq between
@\* | bigcirc blacklozenge blacktriangle blacktriangledown blacktriangleleft blacktriangleright bot boxminus bumpeq
@\* | centerdot circeq circledR circledS circleddash curlyeqprec curlyeqsucc diagdown diagup doteqdot dotplus
@\* | doublebarwedge downdownarrows downharpoonleft downharpoonright eqcirc eqslantgtr eqslantless fallingdotseq ggg
@\* | gnapprox gneq gneqq gnsim gtrdot gtreqless gtreqqless gvertneqq idotsint iiiint intercal ldotp leftarrowtail
@\* | leftleftarrows leftrightsquigarrow leftthreetimes lessdot lesseqqgtr lll lnapprox lneq lneqq lnsim looparrowleft
@\* | looparrowright lvertneqq maltese mho multimap nLeftarrow nLeftrightarrow nRightarrow nVDash nVdash ngeqq
@\* | ngeqslant nleftarrow nleftrightarrow nleqq nleqslant npreceq nrightarrow nshortmid nshortparallel nsubseteqq
@\* | nsucceq nsupseteq nsupseteqq ntriangleleft ntrianglelefteq ntriangleright ntrianglerighteq nvDash nvdash
@\* | pitchfork precapprox precnapprox precneqq precnsim precsim restriction rightthreetimes risingdotseq shortmid
@\* | shortparallel smallfrown smallint smallsetminus smallsmile succapprox succnapprox succneqq succnsim succsim
@\* | supsetneqq twoheadleftarrow unlhd unrhd upuparrows varpropto varsubsetneq varsubsetneqq varsupsetneq
@\* | varsupsetneqq vartriangle yen
"""
TEMPLATES = {
    f"\\{name}": template.replace("*", name)
    for template, _, names in (line.partition(" | ") for line in _TEMPLATES.strip("\n").split("\n"))
    for name in names.split()
} | {"\\ ": "\\ ", "~": "~", "°": "@{{}^{\\circ}}"}
TEMPLATES |= {f"\\{name}": f"@\\operatorname{'*' if name in LIMIT_FUNCTIONS else ''}{{{name}}}" for name in FUNCTIONS}
"""What draws a command: ``@`` before what has a colour of its own, ``#`` for an argument, ``[#]`` for one that may be
missing, ``!`` for one that is left out."""
_REPEATED_NAMES = """
overset underset stackrel boldsymbol bm pmb phantom hphantom vphantom smash
overrightarrow overleftarrow overleftrightarrow underrightarrow underleftarrow underleftrightarrow
xrightarrow xleftarrow xleftrightarrow xRightarrow xLeftarrow xlongequal xmapsto xhookrightarrow
"""
REPEATED = frozenset(f"\\{name}" for name in _REPEATED_NAMES.split())
"""Commands that set their arguments several times to choose a size or a distance."""
FONTS = frozenset(f"\\{name}" for name in _FONT_NAMES.split())
ALPHABETS = frozenset(("\\mathbb", "\\mathcal", "\\mathfrak"))
"""Alphabets whose letters are others; those of weight and slant are not."""
SWITCHES = {f"\\{font}": f"\\math{font}" for font in ("rm", "bf", "it", "sf", "tt", "cal")}
TEXTS = dict.fromkeys(("\\text", "\\mbox", "\\hbox", "\\textnormal", "\\textup", "\\textmd", "\\textsc"), "") | {
    "\\textrm": "\\rmfamily ",
    "\\textbf": "\\bfseries ",
    "\\textsf": "\\sffamily ",
    "\\texttt": "\\ttfamily ",
    **dict.fromkeys(("\\textit", "\\textsl", "\\emph"), "\\itshape "),
}
"""Commands of text, and what turns its font on. ``\\textit`` itself does not hold a table within a table."""
INFIX = {"\\over": "\\frac", "\\choose": "\\binom", "\\atop": "\\genfrac{}{}{0pt}{}"}
_ENVIRONMENTS = r"""
. . c array darray subarray tabular matrix smallmatrix gathered gather multline equation displaymath math
. . rl aligned align alignat alignedat split eqnarray flalign
( ) c pmatrix
[ ] c bmatrix
\{ \} c Bmatrix
| | c vmatrix
\| \| c Vmatrix
\{ . l cases dcases
. \} l rcases
"""
ENVIRONMENTS = {
    name: (left, right, columns)
    for left, right, columns, *names in map(str.split, _ENVIRONMENTS.strip().split("\n"))
    for name in names
}
"""Delimiters of environments, and the alignment of columns where they do not define it."""
WITH_COLUMNS = frozenset(("array", "darray", "subarray", "tabular", "alignat", "alignedat"))
DISPLAYED = frozenset(("aligned", "align", "alignat", "alignedat", "split", "eqnarray", "gathered", "gather", "dcases"))
_SYNONYMS = r"""
\le=\leq \ge=\geq \leqslant=\leq \geqslant=\geq \to=\rightarrow \gets=\leftarrow \land=\wedge \lor=\vee
\lnot=\neg \owns=\ni \ast=* \lbrace=\{ \rbrace=\} \lbrack=[ \rbrack=] \vert=| \mid=| \lvert=| \rvert=| \Vert=\|
\lVert=\| \rVert=\| \parallel=\| \colon=: \dots=\ldots \dotsc=\ldots \dotsb=\cdots \dotsm=\cdots \dotsi=\cdots
\cdotp=\cdot \centerdot=\cdot \setminus=\backslash \smallsetminus=\backslash \iff=\Leftrightarrow
\Longleftrightarrow=\Leftrightarrow \implies=\Rightarrow \Longrightarrow=\Rightarrow \impliedby=\Leftarrow
\Longleftarrow=\Leftarrow \longrightarrow=\rightarrow \longleftarrow=\leftarrow \longleftrightarrow=\leftrightarrow
\longmapsto=\mapsto \xrightarrow=\rightarrow \xleftarrow=\leftarrow \widehat=\hat \widetilde=\tilde \overline=\bar
\overrightarrow=\vec \emptyset=\varnothing \hslash=\hbar \lt=< \gt=> \langle=< \rangle=> \Box=\square
\Diamond=\diamond \doublecap=\Cap \doublecup=\Cup \degree=\circ °=\circ \bmod=\mod \prime='
\triangle=\vartriangle \dfrac=\frac \tfrac=\frac \cfrac=\frac \dbinom=\binom \tbinom=\binom \bigtimes=\times
\dag=\dagger \ddag=\ddagger \textdegree=\circ \slash=/ \ldotp=. \bot=\perp
"""
SYNONYMS = dict(pair.split("=", 1) for pair in _SYNONYMS.split())
"""Symbols that look alike, and one that stands for all of them."""
