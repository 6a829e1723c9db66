// Reads of the page's objects that the page cannot redirect.
// Prototypes are our own in an isolated world, but a form control named "action" or "click" still hides the form's own
// property, and an image named "querySelector" hides the document's. Every read here goes through the prototype.

const bindCall = Function.prototype.bind.bind(Function.prototype.call);
const method = (proto, name) => bindCall(proto[name]);
const getter = (proto, name) => bindCall(Object.getOwnPropertyDescriptor(proto, name).get);

const getAttr = method(Element.prototype, "getAttribute");
const attrNames = method(Element.prototype, "getAttributeNames");
const matches = method(Element.prototype, "matches");
const closest = method(Element.prototype, "closest");
const query = method(Element.prototype, "querySelector");
const queryAll = method(Element.prototype, "querySelectorAll");
const checkVisibility = method(Element.prototype, "checkVisibility");
const measure = method(Element.prototype, "getBoundingClientRect");
const scrollIntoView = method(Element.prototype, "scrollIntoView");
const openRoot = getter(Element.prototype, "shadowRoot");
const closedRoots = new WeakMap(); // host → root, as far as the browser handed them over
let anyClosed = false;
const shadowOf = (el) => openRoot(el) ?? (anyClosed ? (closedRoots.get(el) ?? null) : null);
const localName = getter(Element.prototype, "localName");
const slotOf = getter(Element.prototype, "assignedSlot");
const textSlotOf = getter(Text.prototype, "assignedSlot");
const previousElement = getter(Element.prototype, "previousElementSibling");
const firstElement = getter(Element.prototype, "firstElementChild");
const elementCount = getter(Element.prototype, "childElementCount");
const firstChild = getter(Node.prototype, "firstChild");
const nextSibling = getter(Node.prototype, "nextSibling");
const parentNode = getter(Node.prototype, "parentNode");
const nodeType = getter(Node.prototype, "nodeType");
const isConnected = getter(Node.prototype, "isConnected");
const rootOf = method(Node.prototype, "getRootNode");
const textData = getter(CharacterData.prototype, "data");
const textContent = getter(Node.prototype, "textContent");
const assignedNodes = method(HTMLSlotElement.prototype, "assignedNodes");
const dispatch = method(EventTarget.prototype, "dispatchEvent");
const focusHTML = method(HTMLElement.prototype, "focus");
const focusSVG = method(SVGElement.prototype, "focus");
const takeFocus = (el) => (el instanceof SVGElement ? focusSVG : focusHTML)(el, { preventScroll: true });
const clickElement = method(HTMLElement.prototype, "click");
const contentEditableOf = getter(HTMLElement.prototype, "isContentEditable");
const fromDocument = (name) => {
  const read = getter(Document.prototype, name);
  return () => read(document);
};
const documentURL = fromDocument("URL");
const documentTitle = fromDocument("title");
const documentState = fromDocument("readyState");
const documentRoot = fromDocument("documentElement");
const baseURI = () => getter(Node.prototype, "baseURI")(document);
const documentQueryAll = method(Document.prototype, "querySelectorAll");
const execCommand = method(Document.prototype, "execCommand");
const byId = (root, id) => (nodeType(root) === 9 ? documentById(root, id) : fragmentById(root, id));
const documentById = method(Document.prototype, "getElementById");
const fragmentById = (root, id) =>
  nodeType(root) === 11 ? DocumentFragment.prototype.getElementById.call(root, id) : null;

const isElement = (node) => nodeType(node) === 1;
const isText = (node) => nodeType(node) === 3;
const namespaceOf = getter(Element.prototype, "namespaceURI");
const isHTML = (el) => namespaceOf(el) === "http://www.w3.org/1999/xhtml";
// Which HTML element it is; "" for one of SVG or MathML that only has such a name.
function htmlTag(el) {
  if (el !== here) return isHTML(el) ? localName(el) : "";
  return (hereHTML ??= isHTML(el)) ? hereTag : "";
}

// What may be remembered while one look is taken: nothing of the page changes within a task, except by events of ours.
// `null` between looks, and while events are sent.
let look = null;

function during(run) {
  const outer = look;
  look = { rectOf: null, rect: null, styled: null, style: null, disabled: new Map(), labels: null, asked: 0, sheets: null,
    whole: false, all: null };
  try {
    return run();
  } finally {
    look = outer;
    arrive(null);
  }
}

// What is known of the element that a walk is at. Thirty attributes are asked for, most elements have two or three.
let here = null;
let hereNames = [];
let hereTag = "";
let hereParent; // `undefined`: not asked yet
let hereHTML; // likewise
let hereType; // likewise, of an input

function arrive(el) {
  here = el;
  hereNames = el === null ? [] : attrNames(el);
  hereTag = el === null ? "" : localName(el);
  hereParent = hereHTML = hereType = undefined;
}

function hasAttr(el, name) {
  if (el !== here) return getAttr(el, name) !== null;
  for (let i = 0; i < hereNames.length; i++) if (hereNames[i] === name) return true;
  return false;
}

const attr = (el, name) => (el === here && !hasAttr(el, name) ? null : getAttr(el, name));
const tagOf = (el) => (el === here ? hereTag : localName(el));

// Which elements match: of a whole document the browser tells it at once, for one element it is asked.
function isAmong(el, selector) {
  if (look === null || !look.whole) return matches(el, selector);
  look.all ??= new Map();
  let found = look.all.get(selector);
  if (found === undefined) look.all.set(selector, (found = new Set(documentQueryAll(document, selector))));
  return found.size > 0 && found.has(el);
}

// A box costs more than all other reads together; one element is asked for it several times in a row.
function rectOf(el) {
  if (look === null) return measure(el);
  if (look.rectOf !== el) {
    look.rect = measure(el);
    look.rectOf = el;
  }
  return look.rect;
}

// The flat tree: what is rendered. The host of a closed shadow root that nobody handed over looks empty.
// By siblings: three times cheaper than going through a live list.
function childrenOf(el) {
  const root = shadowOf(el);
  if (root !== null) metShadow();
  if (root === null && tagOf(el) === "slot" && el instanceof HTMLSlotElement) {
    const assigned = assignedNodes(el);
    if (assigned.length) return assigned;
  }
  if (root === null && tagOf(el) === "details" && el instanceof HTMLDetailsElement && !detailsOpen(el)) return summaryOf(el);
  const children = [];
  for (let at = firstChild(root ?? el); at !== null; at = nextSibling(at)) children.push(at);
  return children;
}

const detailsOpen = getter(HTMLDetailsElement.prototype, "open");
function summaryOf(details) {
  const summary = query(details, ":scope > summary");
  return summary === null ? [] : [summary];
}

// The text of an element that holds nothing but text; `null` for any other.
function onlyText(el) {
  if (shadowOf(el) !== null || firstElement(el) !== null) return null;
  return tagOf(el) === "slot" || tagOf(el) === "details" ? null : textContent(el);
}

// Neither an element nor, through a slot or a shadow root, one from elsewhere.
const holdsNothing = (el) => firstElement(el) === null && shadowOf(el) === null && tagOf(el) !== "slot";

// A walk of a document in which it has met no shadow root is easier: it is always in the document itself.
function metShadow() {
  if (look === null) return;
  look.whole = false;
  look.sheets = ANY;
}

function parentOf(node) {
  if (node !== here) return flatParent(node);
  if (hereParent === undefined) hereParent = flatParent(node);
  return hereParent;
}

function flatParent(node) {
  if (look !== null && look.whole) {
    const plain = parentNode(node);
    return plain === null || nodeType(plain) !== 1 ? null : plain;
  }
  const slot = isElement(node) ? slotOf(node) : isText(node) ? textSlotOf(node) : null;
  if (slot) return slot;
  const parent = parentNode(node);
  if (parent === null) return null;
  if (nodeType(parent) === 11) return parent instanceof ShadowRoot ? parent.host : null;
  return nodeType(parent) === 1 ? parent : null;
}

function* ancestorsOf(el) {
  for (let at = parentOf(el); at !== null; at = parentOf(at)) yield at;
}

function flatContains(outer, inner) {
  for (let at = inner; at !== null; at = parentOf(at)) if (at === outer) return true;
  return false;
}

// Referenced elements of an id list, in the element's own tree only (ids do not cross a shadow boundary).
function idRefs(el, name) {
  const list = attr(el, name);
  if (!list) return [];
  const root = rootOf(el);
  return list.split(/\s+/).filter(Boolean).map((id) => byId(root, id)).filter(Boolean);
}

// White space as a person sees it: runs become one blank. Invisible characters are kept for the policy to judge.
const clean = (text) => (UNCLEAN.test(text) ? text.replace(/[ \t\n\r\f\u00a0]+/g, " ") : text).trim();
const UNCLEAN = /[\t\n\r\f\u00a0]|  /;
const orNull = (text) => (text === "" ? null : text);

const STYLED = { visibilityProperty: true };
function styleOf(el) {
  if (look === null) return getComputedStyle(el);
  if (look.styled !== el) {
    look.style = getComputedStyle(el);
    look.styled = el;
  }
  return look.style;
}

// Rendered for a reader: has a box (or lends its place to its children) and is not `visibility: hidden`.
function rendered(el) {
  if (checkVisibility(el, STYLED)) return true;
  const style = styleOf(el);
  if (style.display !== "contents" || style.visibility !== "visible") return false;
  const parent = parentOf(el);
  return parent === null || rendered(parent);
}
