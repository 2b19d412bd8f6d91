// LaTeX as MathML. Temml (temml.min.js, a classic script of its own) makes the tree; the nodes are made here.

const MATHML = "http://www.w3.org/1998/Math/MathML";
const TAGS = new Set(
  ("math mrow mi mn mo ms mtext mspace msup msub msubsup mover munder munderover mmultiscripts mprescripts none mfrac " +
    "msqrt mroot mtable mtr mtd mpadded mphantom mstyle menclose").split(" "),
);
const ATTRIBUTES = new Set(
  ("accent accentunder columnalign columnspan depth display displaystyle fence form height largeop linethickness lspace " +
    "mathvariant maxsize minsize movablelimits notation rowspan rspace scriptlevel separator stretchy symmetric voffset width").split(" "),
);
const PLAIN_STYLE = /^[\w.%# +-]*$/; // no address, no function
const LONGEST = 5000;
const MOST_PARTS = 5000;
const SETTINGS = { displayMode: true, throwOnError: true, trust: false, maxExpand: 500, maxSize: [20, 500] };

/** A display formula; null where its LaTeX cannot be rendered. */
export function formulaNode(latex) {
  const { temml } = globalThis;
  if (!temml || latex.length > LONGEST) return null;
  let left = MOST_PARTS;
  const copy = (tree) => {
    if (--left < 0) throw new RangeError("too many parts");
    if (tree.text !== undefined && tree.type === undefined) return document.createTextNode(tree.text);
    const tag = tree.type ?? "mrow"; // a fragment has no type
    if (!TAGS.has(tag)) throw new TypeError(`no part of a formula: ${tag}`);
    const node = document.createElementNS(MATHML, tag);
    for (const [name, value] of Object.entries(tree.attributes ?? {})) {
      if (ATTRIBUTES.has(name)) node.setAttribute(name, value);
    }
    for (const [name, value] of Object.entries(tree.style ?? {})) {
      if (PLAIN_STYLE.test(value) && name !== "position") node.style[name] = value;
    }
    for (const side of ["tml-left", "tml-right"]) if (tree.classes?.includes(side)) node.setAttribute("class", side);
    node.append(...tree.children.map(copy));
    return node;
  };
  try {
    return copy(temml.__renderToMathMLTree(latex, SETTINGS));
  } catch {
    return null; // LaTeX that Temml does not know, or too much of it: its source is shown
  }
}
