// The walk: one flat list of nodes in pre-order. Elements without a meaning of their own are passed through; text between
// them is joined. Subtrees that a screen reader cannot reach (`aria-hidden`) are left out, as browsers do.

const TRANSPARENT = new Set(["generic", "none", "presentation", "paragraph", "rowgroup", "strong", "emphasis", "code",
  "subscript", "superscript", "insertion", "deletion", "time", "document", "term", "definition", "legend", "caption",
  "mark", "directory"]);
const FOLDED = new Set(["cell", "gridcell", "rowheader", "columnheader", "label", "listitem"]);
const INLINE_TAGS = new Set(["a", "abbr", "b", "bdi", "bdo", "cite", "code", "data", "dfn", "em", "font", "i", "kbd",
  "mark", "q", "s", "samp", "slot", "small", "span", "strong", "sub", "sup", "time", "u", "var", "wbr"]);
const MOST_DOM_DEPTH = 1_500;

class Walk {
  constructor(options) {
    this.options = options;
    this.deadline = performance.now() + options.budget_ms;
    this.rows = [];
    this.shared = { role: new Table(), states: new Table(), actions: new Table(), context: new Table() };
    this.reasons = new Set();
    this.right = innerWidth * 1000;
    this.bottom = innerHeight * 1000;
    this.memo = newMemo();
    this.run = "";
    this.hosts = []; // custom elements without an open root: perhaps a closed one
    this.observed = 0;
    this.stopped = false;
    this.framed = false;
  }

  outOfBudget() {
    if (this.stopped) return true;
    if (this.rows.length >= this.options.max_nodes) this.stop("more than " + this.options.max_nodes + " nodes");
    else if ((this.observed & 63) === 0 && performance.now() > this.deadline) this.stop("the walk took longer than its budget");
    return this.stopped;
  }

  stop(reason) {
    this.stopped = true;
    this.reasons.add(reason);
  }

  // Writes the text collected so far as one node.
  flush(place) {
    if (this.run === "") return;
    const text = clean(this.run);
    this.run = "";
    if (text === "" || place.quiet) return;
    place.count++;
    this.rows.push([place.depth, text, HAS.text]);
  }

  children(el, place, domDepth) {
    let only;
    if (domDepth > MOST_DOM_DEPTH) {
      this.reasons.add("elements nested deeper than " + MOST_DOM_DEPTH);
      place.cut = true;
      return;
    }
    if (place.quiet ? holdsNothing(el) : (only = onlyText(el)) !== null) {
      if (!place.quiet) this.run += only;
      return;
    }
    for (const child of childrenOf(el)) {
      if (isText(child)) {
        if (!place.quiet) this.run += textData(child);
      } else if (isElement(child)) {
        if (this.outOfBudget()) {
          place.cut = true;
          return;
        }
        this.visit(child, place, domDepth + 1);
      }
    }
  }

  visit(el, place, domDepth) {
    this.observed++;
    arrive(el);
    const tag = tagOf(el);
    if (UNREAD_TAGS.has(tag) || attr(el, "aria-hidden") === "true") return;
    // One cheap question settles most elements; styles are read only where it does not.
    const role = roleOf(el);
    const seen = INTERACTIVE_ROLES.has(role) && checkVisibility(el, SEEN);
    const boxed = seen || checkVisibility(el, STYLED);
    let shown = boxed || tag === "option" || tag === "optgroup";
    if (!shown) {
      const { display, visibility } = styleOf(el);
      if (display === "none" || (display !== "contents" && !checkVisibility(el))) return; // closed details, skipped content
      shown = visibility === "visible";
    }
    let interactive = shown && isInteractive(el, role);
    const pointer = place.pointer || interactive || (shown && hasPointer(el, tag));
    if (pointer && !place.pointer && !place.quiet && isHTML(el)) interactive = true;
    if (shown && tag.includes("-") && shadowOf(el) === null) this.hosts.push([idOf(el), tag, matches(el, ":defined")]);
    if (!shown || (!interactive && (TRANSPARENT.has(role) || (place.quiet && role !== "iframe")))) {
      this.passThrough(el, tag, place, domDepth);
      return;
    }
    this.emit(el, { tag, role, interactive, pointer, boxed, seen }, place, domDepth);
  }

  passThrough(el, tag, place, domDepth) {
    const block = !INLINE_TAGS.has(tag);
    if (block && tag !== "br") this.flush(place);
    if (tag === "br") this.run += " ";
    this.children(el, place, domDepth);
    if (block && tag !== "br") this.flush(place);
  }

  emit(el, is, place, domDepth) {
    const { tag, role, interactive } = is;
    this.flush(place);
    place.count++;
    const row = new Row(place.depth, idOf(el), this.shared.role.index(role, role));
    this.rows.push(row.values);
    const byContent = NAMED_BY_CONTENT.has(role) && (interactive || !FOLDED.has(role)) && role !== "row";
    // What can be acted on has the name by which the act will know it again.
    if (interactive || byContent || !(FOLDED.has(role) || role === "row")) row.text(HAS.name, nameOf(el, role, is.boxed ? false : undefined));
    else row.text(HAS.name, clean(attr(el, "aria-label") || ""));
    const id = attr(el, "id");
    if (id) row.add(HAS.native_id, { kind: "id", value: id });
    if (interactive) this.describe(row, el, role, is.seen);
    else if (this.options.include_bounds) row.add(HAS.box, boxOf(el));
    if (place.depth + 1 > this.options.max_depth && elementCount(el) > 0) {
      this.reasons.add("a depth of more than " + this.options.max_depth);
      row.add(HAS.truncated, true);
    } else {
      is.quiet = place.quiet || byContent || isField(el);
      this.inside(row, el, is, place, domDepth);
    }
    row.end();
  }

  inside(row, el, is, place, domDepth) {
    const { tag, role, quiet, pointer } = is;
    const inner = { depth: place.depth + 1, count: 0, cut: false, quiet, pointer };
    const start = this.rows.length;
    if (holdsFrame(el, tag)) {
      this.framed = true;
      row.add(HAS.frame, true);
    }
    else this.children(el, inner, domDepth);
    this.flush(inner);
    const size = this.knownSize(el, role, inner.count);
    const folds = FOLDED.has(role) && !is.interactive && inner.count === 1;
    if (!(folds && this.fold(row, start)) && inner.count) row.add(HAS.children_count, inner.count);
    if (size !== null) row.add(HAS.size, size.known);
    if (inner.cut || size?.cut) row.add(HAS.truncated, true);
  }

  // A cell with nothing but text is that text.
  fold(row, start) {
    const only = this.rows[start];
    if (this.rows.length !== start + 1 || only[only.length - 1] !== HAS.text || row.mask & HAS.name) return false;
    this.rows.pop();
    row.add(HAS.folded, only[1]);
    return true;
  }

  describe(row, el, role, seen) {
    row.mask |= HAS.interactive;
    row.text(HAS.value, valueOf(el, role));
    row.text(HAS.description, descriptionOf(el));
    const box = boxOf(el);
    row.add(HAS.box, box);
    const { shared } = this;
    const context = contextOf(el, this.memo);
    row.values.push(shared.states.words(STATES, this.stateBits(statesOf(el, role, seen), box)),
      shared.actions.words(ACTIONS, actionBits(el, role)), shared.context.index(context, context));
  }

  // Of `STATES`, those that are known true.
  stateBits(states, box) {
    let bits = states.enabled ? 0 : 1;
    if (states.focused) bits |= 2;
    if (states.readonly) bits |= 4;
    if (states.editable) bits |= 8;
    if (states.secure) bits |= 16;
    if (states.required) bits |= 32;
    if (states.checked) bits |= 64;
    if (states.indeterminate) bits |= 128;
    if (states.expanded) bits |= 256;
    if (states.selected) bits |= 512;
    if (states.pressed) bits |= 1024;
    if (states.expanded === false) bits |= 2048;
    if (!states.visible) bits |= 4096;
    if (box[0] + box[2] <= 0 || box[1] + box[3] <= 0 || box[0] >= this.right || box[1] >= this.bottom) bits |= 8192;
    return bits;
  }

  // A virtualised list says how many rows it has and renders a few. One that says -1 does not know.
  knownSize(el, role, shown) {
    const said = TABLES.has(role) ? this.rowsOf(el) : LISTS.has(role) ? this.itemsOf(el, shown) : null;
    if (said === null) return null;
    const { known, rendered, what } = said;
    if (known === -1) {
      this.reasons.add("a list does not know its size and shows " + rendered);
      return { known: rendered, cut: true };
    }
    if (rendered >= known) return { known, cut: false };
    this.reasons.add("a " + what + " of " + known + " shows " + rendered);
    return { known, cut: true };
  }

  rowsOf(el) {
    const [rows, columns] = [sizeSaid(el, "aria-rowcount"), sizeSaid(el, "aria-colcount")];
    const shown = rows === null && columns === null ? [] : [...queryAll(el, "tr, [role=row]")];
    const rendered = shown.length;
    if (rows !== null && (rows === -1 || rendered < rows || columns === null)) return { known: rows, rendered, what: "list" };
    if (columns === null) return null;
    const widest = Math.max(0, ...shown.slice(0, 50).map((row) => queryAll(row, CELLS).length));
    return { known: columns, rendered: widest, what: "row" };
  }

  // The list itself may say it, or each of its items.
  itemsOf(el, shown) {
    const own = sizeSaid(el, "aria-setsize");
    if (own !== null) return { known: own, rendered: shown, what: "list" };
    const sizes = [...queryAll(el, "[aria-setsize]")].map((item) => sizeSaid(item, "aria-setsize")).filter((size) => size !== null);
    if (sizes.length === 0) return null;
    const known = sizes.includes(-1) ? -1 : sizes.reduce((most, size) => Math.max(most, size));
    return { known, rendered: sizes.filter((size) => size === known).length, what: "list" };
  }
}

const STATES = ["disabled", "focused", "readonly", "editable", "secure", "required", "checked", "indeterminate", "expanded",
  "selected", "pressed", "collapsed", "hidden", "offscreen"];
const TABLES = new Set(["grid", "table", "treegrid"]);
const LISTS = new Set(["list", "listbox", "feed", "tree", "menu", "tablist", "radiogroup"]);

function sizeSaid(el, name) {
  const size = Number.parseInt(attr(el, name) ?? "", 10);
  return size > 0 || size === -1 ? Math.min(MOST, size) : null;
}

// Whether the walk should have come to this element.
function shownAtAll(id) {
  const el = nodeOf(id);
  if (el === null || !rendered(el)) return false;
  for (let at = el; at !== null; at = parentOf(at)) if (ariaHidden(at)) return false;
  return true;
}

// A node leaves as a short row of values: depth, id, role, then what `mask` says is there, in the order of these bits. What
// many nodes share (roles, states, actions, context) is written once and named by its number. That is a third of the
// text that would otherwise be written, carried through two processes, and read.
const HAS = { name: 1, native_id: 2, value: 4, description: 8, box: 16, interactive: 32, frame: 64, folded: 128,
  children_count: 256, size: 512, truncated: 1024, text: 2048 };

class Row {
  constructor(depth, node, role) {
    this.values = [depth, node, role];
    this.mask = 0;
  }

  add(bit, value) {
    this.mask |= bit;
    this.values.push(value);
  }

  text(bit, value) {
    if (value !== "" && value !== null) this.add(bit, value);
  }

  end() {
    this.values.push(this.mask);
  }
}

class Table {
  constructor() {
    this.values = [];
    this.known = new Map();
  }

  index(key, value) {
    let found = this.known.get(key);
    if (found === undefined) {
      found = this.values.push(value) - 1;
      this.known.set(key, found);
    }
    return found;
  }

  words(words, bits) {
    return this.known.get(bits) ?? this.index(bits, wordsOf(words, bits));
  }
}

function walk(options) {
  const state = new Walk(options);
  const root = options.root ? nodeOf(options.root) : documentRoot();
  if (root === null && options.root) state.stop("the element to look into was removed");
  const place = { depth: options.depth ?? 0, count: 0, cut: false, quiet: false, pointer: false };
  during(() => {
    look.whole = options.shortcuts !== false && !options.root; // a part may lie in a shadow root
    if (!look.whole) look.sheets = ANY;
    if (root !== null) state.visit(root, place, 0);
    state.flush(place);
  });
  const tables = Object.fromEntries(Object.entries(state.shared).map(([key, table]) => [key, table.values]));
  return {
    title: documentTitle(), url: documentURL(), rows: state.rows, tables, reasons: [...state.reasons],
    observed: state.observed, stopped: state.stopped, hosts: state.hosts, framed: state.framed,
    loading: documentState() === "loading",
  };
}
