// The walk: one flat list of nodes in pre-order. Elements without a meaning of their own are passed through; text between
// them is joined. Subtrees that a screen reader cannot reach (`aria-hidden`) are left out, as browsers do.

const TRANSPARENT = new Set(["generic", "none", "presentation", "paragraph", "rowgroup", "strong", "emphasis", "code",
  "subscript", "superscript", "insertion", "deletion", "time", "document", "term", "definition", "legend", "caption",
  "mark", "directory"]);
const FOLDED = new Set(["cell", "gridcell", "rowheader", "columnheader", "label", "listitem"]);
const TOKENS = ["checked", "expanded", "selected", "focused", "readonly", "required", "secure", "pressed", "indeterminate", "editable"];
const INLINE_TAGS = new Set(["a", "abbr", "b", "bdi", "bdo", "cite", "code", "data", "dfn", "em", "font", "i", "kbd",
  "mark", "q", "s", "samp", "slot", "small", "span", "strong", "sub", "sup", "time", "u", "var", "wbr"]);
const MOST_DOM_DEPTH = 1_500;

class Walk {
  constructor(options) {
    this.options = options;
    this.deadline = performance.now() + options.budget_ms;
    this.nodes = [];
    this.reasons = new Set();
    this.memo = newMemo();
    this.run = "";
    this.hosts = []; // custom elements without an open root: perhaps a closed one
    this.observed = 0;
    this.stopped = false;
  }

  outOfBudget() {
    if (this.stopped) return true;
    if (this.nodes.length >= this.options.max_nodes) this.stop("more than " + this.options.max_nodes + " nodes");
    else if ((this.observed & 63) === 0 && performance.now() > this.deadline) this.stop("the walk took longer than its budget");
    return this.stopped;
  }

  stop(reason) {
    this.stopped = true;
    this.reasons.add(reason);
  }

  // Writes the text collected so far as one node.
  flush(place) {
    const text = clean(this.run);
    this.run = "";
    if (text !== "" && !place.quiet)
      this.nodes.push({ d: place.depth, role: "statictext", text, path: pathIn(place) });
  }

  children(el, place, domDepth) {
    if (domDepth > MOST_DOM_DEPTH) {
      this.reasons.add("elements nested deeper than " + MOST_DOM_DEPTH);
      place.cut = true;
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
    const tag = tagOf(el);
    if (UNREAD_TAGS.has(tag) || attr(el, "aria-hidden") === "true") return;
    const style = styleOf(el);
    const option = tag === "option" || tag === "optgroup";
    if (!option && style.display === "none") return;
    if (!option && style.display !== "contents" && !checkVisibility(el)) return; // closed details, skipped content
    const shown = option || style.visibility === "visible";
    const role = shown ? roleOf(el) : "generic";
    const interactive = shown && (isInteractive(el, role) || (!place.pointer && style.cursor === "pointer" && !place.quiet && isHTML(el)));
    if (tag.includes("-") && shown && shadowOf(el) === null && matches(el, ":defined")) this.hosts.push([idOf(el), tag]);
    if (!shown || (!interactive && (TRANSPARENT.has(role) || (place.quiet && role !== "iframe")))) {
      this.passThrough(el, tag, place, domDepth);
      return;
    }
    this.emit(el, tag, role, interactive, style, place, domDepth);
  }

  passThrough(el, tag, place, domDepth) {
    const block = !INLINE_TAGS.has(tag);
    if (block && tag !== "br") this.flush(place);
    if (tag === "br") this.run += " ";
    this.children(el, place, domDepth);
    if (block && tag !== "br") this.flush(place);
  }

  emit(el, tag, role, interactive, style, place, domDepth) {
    this.flush(place);
    const path = pathIn(place);
    const node = { d: place.depth, node: idOf(el), role };
    this.nodes.push(node);
    const byContent = NAMED_BY_CONTENT.has(role) && (interactive || !FOLDED.has(role)) && role !== "row";
    if (byContent || !(FOLDED.has(role) || role === "row")) put(node, "name", nameOf(el, role));
    else put(node, "name", clean(attr(el, "aria-label") || ""));
    this.describe(node, el, role, interactive, style);
    node.path = path;
    if (place.depth + 1 > this.options.max_depth && elementCount(el) > 0) {
      node.truncated = true;
      this.reasons.add("a depth of more than " + this.options.max_depth);
      return;
    }
    const inside = {
      depth: place.depth + 1, path, count: 0, cut: false,
      quiet: place.quiet || byContent || isField(el),
      pointer: place.pointer || interactive || style.cursor === "pointer",
    };
    if (tag === "iframe" || tag === "frame") node.frame = this.frameIndex(el);
    else this.children(el, inside, domDepth);
    this.flush(inside);
    if (inside.cut) node.truncated = true;
    if (FOLDED.has(role) && inside.count === 1) this.fold(node);
    else if (inside.count) node.children_count = inside.count;
    this.knownSize(node, el, role, inside.count);
  }

  // A cell with nothing but text is that text.
  fold(node) {
    const last = this.nodes[this.nodes.length - 1];
    if (last.role === "statictext" && last.d === node.d + 1 && node.name === undefined) {
      this.nodes.pop();
      node.name = last.text;
    } else node.children_count = 1;
  }

  describe(node, el, role, interactive, style) {
    const id = attr(el, "id");
    if (id) node.native_id = { kind: "id", value: id };
    if (!interactive) {
      if (this.options.include_bounds) node.box = boxOf(el);
      return;
    }
    node.interactive = true;
    node.box = boxOf(el);
    put(node, "value", valueOf(el, role) ?? "");
    put(node, "description", descriptionOf(el));
    const states = statesOf(el, role);
    const tokens = TOKENS.filter((token) => states[token] === true);
    if (!states.enabled) tokens.unshift("disabled");
    if (states.expanded === false) tokens.push("collapsed");
    if (!states.visible || style.opacity === "0") tokens.push("hidden");
    const [x, y, w, h] = node.box;
    if (x + w <= 0 || y + h <= 0 || x >= innerWidth * 1000 || y >= innerHeight * 1000) tokens.push("offscreen");
    node.states = tokens;
    node.actions = actionsOf(el, role);
    node.context = contextOf(el, this.memo);
  }

  // A virtualised list says how many rows it has and renders a few.
  knownSize(node, el, role, shown) {
    const name = role === "grid" || role === "table" || role === "treegrid" ? "aria-rowcount" : role === "list" || role === "listbox" ? "aria-setsize" : null;
    const size = name === null ? NaN : Number.parseInt(attr(el, name) ?? "", 10);
    if (!(size > 0)) return;
    node.size = size;
    const rendered = name === "aria-rowcount" ? queryAll(el, "tr, [role=row]").length : shown;
    if (rendered >= size) return;
    node.truncated = true;
    this.reasons.add("a list of " + size + " shows " + rendered);
  }

  // The frame's number among the document's child windows; -1 where the page cannot be asked (inside a shadow root).
  frameIndex(el) {
    const inner = el.contentWindow;
    for (let i = 0; i < window.length; i++) if (window[i] === inner) return i;
    return -1;
  }
}

const pathIn = (place) => (place.path === "" ? "" : place.path + ".") + place.count++;

function put(node, key, value) {
  if (value !== "" && value !== null && value !== undefined) node[key] = value;
}

function walk(options) {
  const state = new Walk(options);
  const root = documentRoot();
  const place = { depth: options.depth ?? 0, path: "", count: 0, cut: false, quiet: false, pointer: false };
  if (root !== null) state.visit(root, place, 0);
  state.flush(place);
  return {
    title: documentTitle(), url: documentURL(), nodes: state.nodes, reasons: [...state.reasons], observed: state.observed,
    hosts: state.hosts, loading: documentState() === "loading",
  };
}

// Which of its parent's child windows this document is.
function ownIndex() {
  if (window === window.parent) return -1;
  for (let i = 0; i < window.parent.length; i++) if (window.parent[i] === window) return i;
  return -1;
}
