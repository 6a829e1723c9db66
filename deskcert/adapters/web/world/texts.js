// The text that a person reads on a control: what is painted, in the order and with the gaps in which it is painted. The
// accessible name says what a screen reader reads; the page can make the two differ, so policy is given both.

// Text of generated content. `spoken`: as a screen reader has it, the alternative after the slash; else as it is painted.
const CONTENT = /"((?:[^"\\]|\\.)*)"|attr\(([\w-]+)[^)]*\)|(open-quote|close-quote)|counters?\(([^)]*)\)|(\/)|[^\s"]+/gs;
const COMMON_COUNTERS = new Set(["none", "decimal", "decimal-leading-zero", "lower-roman", "upper-roman", "lower-alpha", "upper-alpha",
  "lower-latin", "upper-latin", "lower-greek", "disc", "circle", "square", "disclosure-open", "disclosure-closed"]);

const quotedTexts = (css) => [...css.matchAll(/"((?:[^"\\]|\\.)*)"/gs)].map(([, quoted]) => unescaped(quoted)).join("");

// A CSS string: `\a ` is a line feed, `\41` an A, any other escaped character stands for itself.
const unescaped = (quoted) =>
  quoted.replace(/\\(?:([0-9a-f]{1,6})\s?|(.))/gis, (_, hex, char) => (hex ? String.fromCodePoint(parseInt(hex, 16) || 0xfffd) : char));

// A counter counts; a style of the page's own can make words of its numbers, and those cannot be read.
function readCounterStyle(style) {
  if (style !== undefined && !COMMON_COUNTERS.has(style)) throw new Error("text made by the counter style " + style);
}

function pseudoText(el, which, spoken = true) {
  if (!styleSays("content")) return "";
  const style = getComputedStyle(el, which);
  const { content } = style;
  if (content === "none" || content === "normal" || content === "") return "";
  let text = "";
  for (const [, quoted, named, quote, counter, slash] of content.matchAll(CONTENT)) {
    if (slash !== undefined) {
      if (!spoken) break;
      text = "";
    } else if (quoted !== undefined) text += unescaped(quoted);
    else if (named !== undefined) text += attr(el, named) || "";
    else if (quote !== undefined && !spoken) text += quotedTexts(style.quotes);
    else if (counter !== undefined && !spoken) readCounterStyle(counter.split(/,\s*/).at(counter.includes('"') ? 2 : 1));
  }
  return text;
}

// What stands before a list item: people read a text there as part of it.
function markerText(el) {
  const { display, listStyleType } = styleOf(el);
  if (!display.includes("list-item")) return "";
  const own = pseudoText(el, "::marker", false);
  if (own !== "") return own + " ";
  if (listStyleType.startsWith('"')) return quotedTexts(listStyleType) + " ";
  readCounterStyle(listStyleType);
  return "";
}

const FAR = 1_000; // CSS pixels from the control: moved out of sight, not part of it
const MOST_PIECES = 200;
const newRange = method(Document.prototype, "createRange");
const rectsOfRange = method(Range.prototype, "getClientRects");
const selectNode = method(Range.prototype, "selectNodeContents");

function rectsOfText(node) {
  const range = newRange(document);
  selectNode(range, node);
  return [...rectsOfRange(range)].filter((r) => r.width > 0);
}

// Pieces of text with the boxes in which they are painted; generated text has none that could be asked for.
class Pieces {
  constructor(el, skipControls) {
    this.skipControls = skipControls;
    this.around = rectOf(el);
    this.all = [];
    this.placed = true;
    this.inside(el);
  }

  made(text, el) {
    if (text === "") return;
    this.placed = false;
    this.all.push({ text, el, apart: false });
  }

  inside(el) {
    const overridden = turned(el);
    if (overridden !== "") this.made(overridden, el);
    this.made(markerText(el), el);
    this.made(pseudoText(el, "::before", false), el);
    for (const child of childrenOf(el)) {
      if (isText(child)) this.text(child, el);
      else if (isElement(child)) this.element(child);
    }
    this.made(pseudoText(el, "::after", false), el);
    if (overridden !== "") this.made("\u202c", el);
  }

  text(node, el) {
    const text = textData(node);
    if (text === "") return;
    if (this.all.length > MOST_PIECES) this.placed = false;
    this.all.push({ text, el, apart: false, boxes: this.placed ? rectsOfText(node) : [], shown: this.shown(node, el) });
  }

  shown(node, el) {
    if (styleOf(el).fontSize === "0px") return false;
    const { around } = this;
    return rectsOfText(node).some((r) =>
      r.right > around.left - FAR && r.left < around.right + FAR && r.bottom > around.top - FAR && r.top < around.bottom + FAR);
  }

  element(el) {
    const tag = tagOf(el);
    if (UNREAD_TAGS.has(tag) || !rendered(el)) return;
    if (tag === "iframe" || tag === "frame") throw new Error("a frame inside it is a document of its own");
    if (this.skipControls && isOtherControl(el)) return;
    const before = this.all.length;
    if (tag === "use") this.made(usedText(el), el);
    else if (tag === "br") this.all.push({ text: " ", el, apart: true, boxes: [], shown: false });
    else this.inside(el);
    const own = this.all.slice(before);
    if (concealed(el)) for (const piece of own) piece.shown = false;
    if (own.length && !isInline(el)) {
      own[0].apart = true;
      own.at(-1).ends = true;
    }
  }
}

// An override of the style sheet, written as the characters that do the same in a text.
function turned(el) {
  const { unicodeBidi, direction } = styleOf(el);
  if (!unicodeBidi.includes("override")) return "";
  return direction === "rtl" ? "\u202e" : "\u202d";
}

// Painted with no colour at all, or in a box that lets nothing of it be seen.
function concealed(el) {
  const style = styleOf(el);
  if (style.opacity === "0") return true;
  if (style.display === "inline" || style.display === "contents") return false;
  const box = rectOf(el);
  return /^rect\((0(px)?,? ?){4}\)$/.test(style.clip) || (style.overflow !== "visible" && (box.width <= 1 || box.height <= 1));
}

function usedText(el) {
  const found = /^#(.+)$/.exec(attr(el, "href") || attr(el, "xlink:href") || "");
  const used = found === null ? null : byId(rootOf(el), found[1]);
  return used === null ? "" : contentOfNode(used) || "";
}
const contentOfNode = getter(Node.prototype, "textContent");

// Other controls inside do not lend theirs. Where nothing at all would be left to see, everything is taken.
function visibleText(el, skipControls = true) {
  const { all, placed } = new Pieces(el, skipControls);
  const seen = all.filter((piece) => piece.shown !== false);
  const pieces = seen.length ? seen : all;
  return seen.length > 1 && placed ? asPainted(pieces, el) : asWritten(pieces);
}

// In the order of the document: anything with a box of its own stands apart by a blank.
function asWritten(pieces) {
  let text = "";
  let ended = false;
  for (const piece of pieces) {
    text += (piece.apart || ended ? " " : "") + piece.text;
    ended = piece.ends === true;
  }
  return text;
}

// Line by line, in the direction of reading. Pieces that touch are one word, whatever boxes they come in.
function asPainted(pieces, el) {
  const placed = pieces.map((piece) => ({ ...piece, first: piece.boxes[0], last: piece.boxes.at(-1) }));
  const forwards = styleOf(el).direction !== "rtl";
  placed.sort((a, b) => (onOneLine(a.first, b.first) ? (a.first.left - b.first.left) * (forwards ? 1 : -1) : a.first.top - b.first.top));
  let text = "";
  let before = null;
  for (const { text: own, el: holder, first, last } of placed) {
    if (before !== null && !(onOneLine(before, first) && gap(before, first) < parseFloat(styleOf(holder).fontSize) * 0.15)) text += " ";
    text += own;
    before = last;
  }
  return text;
}

const onOneLine = (a, b) => Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 0.3 * Math.min(a.height, b.height);
const gap = (a, b) => Math.max(a.left, b.left) - Math.min(a.right, b.right);
