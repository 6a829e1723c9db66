// Context: where an element stands, as labels that stay the same while the page lives: row header or first cell, list
// item's label, legend, group, dialog, region, heading. Clocks, live regions, counters and fields' values are not labels.

const MOST_LABEL = 120;
const LIVE = "time, progress, meter, output, input, textarea, select, button, script, style, template, [aria-live]:not([aria-live=off]), " +
  "[role=status], [role=timer], [role=alert], [role=log], [role=marquee], [role=progressbar], [role=button]";
const GROUP_ROLES = new Set(["group", "radiogroup", "toolbar", "menu", "menubar", "listbox", "tablist", "tree", "grid",
  "treegrid", "table", "list", "tabpanel"]);
const REGION_ROLES = new Set(["region", "navigation", "form", "complementary", "search", "main", "banner", "contentinfo"]);
const HEADINGS = "h1, h2, h3, h4, h5, h6, [role=heading]";

function labelText(el) {
  return clean(labelParts(el)).slice(0, MOST_LABEL);
}

function labelParts(el) {
  let text = onlyText(el);
  if (text !== null) return text;
  text = "";
  for (const child of childrenOf(el)) {
    if (isText(child)) text += textData(child);
    else if (isElement(child) && !matches(child, LIVE) && rendered(child)) {
      const part = labelParts(child);
      text += apart(child, part);
    }
  }
  return text;
}

// A count in brackets changes with every action: "Payouts (3)" and "Payouts (2)" are one heading.
const withoutCount = (text) => text.replace(/\s*[([]\s*\d[^)\]]*[)\]]\s*$/, "");

const ownLabel = (el) => {
  const list = attr(el, "aria-labelledby");
  const referencedText = list ? idRefs(el, "aria-labelledby").map(labelText).filter(Boolean).join(" ") : "";
  const text = referencedText || clean(attr(el, "aria-label") || "");
  return text === "" ? "" : withoutCount(text.slice(0, MOST_LABEL));
};

// `memo` spares a walk the work for shared ancestors; without it the answer is the same.
const newMemo = () => ({ places: new Map(), over: new Map(), before: new Map(), under: new Map() });

function contextOf(el, memo = newMemo()) {
  const around = parentOf(el);
  const places = around === null ? [] : placesInside(around, memo);
  if (places.some(isOwnPlace)) return places;
  const heading = headingOver(el, memo);
  return heading === "" ? places : placesUnder(heading, places, memo);
}

const isOwnPlace = (place) => place[0] === "row" || place[0] === "listitem" || place[0] === "dialog";

// The same list for all elements of one place under one heading.
function placesUnder(heading, places, memo) {
  const key = places.length === 0 ? "" : places;
  if (!memo.under.has(key)) memo.under.set(key, new Map());
  const known = memo.under.get(key);
  if (!known.has(heading)) known.set(heading, [...places, ["heading", heading]]);
  return known.get(heading);
}

function placesInside(el, memo) {
  const known = memo.places.get(el);
  if (known !== undefined) return known;
  const around = parentOf(el);
  const outer = around === null ? [] : placesInside(around, memo);
  const place = placeOf(el);
  const places = place === null ? outer : [...outer, place];
  memo.places.set(el, places);
  return places;
}

function placeOf(el) {
  const tag = tagOf(el);
  if (tag === "div" || tag === "span" ? !hasAttr(el, "role") : tag === "body" || tag === "html" || tag === "td") return null;
  const role = roleOf(el);
  const made = (kind, label) => (label === "" ? null : [kind, label]);
  if (role === "row") return made("row", rowLabel(el));
  if (role === "listitem" || role === "treeitem" || role === "article") return made("listitem", itemLabel(el));
  if (role === "dialog" || role === "alertdialog") return made("dialog", ownLabel(el) || firstHeading(el));
  if (tag === "fieldset") return made("legend", ownLabel(el) || legendLabel(el));
  if (GROUP_ROLES.has(role)) return made("group", ownLabel(el) || captionLabel(el, tag));
  if (REGION_ROLES.has(role)) return made("region", ownLabel(el));
  return null;
}

const MAYBE_HEADER = "th, [role]";
const CELLS = "td, th, [role=cell], [role=gridcell], [role=rowheader], [role=columnheader]";

function rowLabel(row) {
  const named = ownLabel(row);
  if (named) return named;
  if (closest(row, "thead")) return "";
  if (query(row, MAYBE_HEADER) === null) {
    const first = query(row, CELLS);
    const text = first === null ? "" : labelText(first);
    if (text) return text;
  }
  const cells = [...queryAll(row, CELLS)].slice(0, 20);
  const header = cells.find((cell) => roleOf(cell) === "rowheader");
  for (const cell of header ? [header, ...cells] : cells) {
    const text = labelText(cell);
    if (text) return text;
  }
  return "";
}

function itemLabel(el) {
  return ownLabel(el) || firstHeading(el) || firstText(el);
}

function firstHeading(el) {
  const heading = query(el, HEADINGS);
  return heading === null ? "" : withoutCount(labelText(heading));
}

function firstText(el) {
  for (const child of childrenOf(el)) {
    if (isText(child)) {
      const text = clean(textData(child));
      if (text) return text.slice(0, MOST_LABEL);
    } else if (isElement(child) && !matches(child, LIVE) && rendered(child)) {
      const text = firstText(child);
      if (text) return text;
    }
  }
  return "";
}

const legendLabel = (el) => {
  const legend = query(el, ":scope > legend");
  return legend === null ? "" : withoutCount(labelText(legend));
};

const captionLabel = (el, tag) => {
  const caption = tag === "table" ? query(el, ":scope > caption") : null;
  return caption === null ? "" : withoutCount(labelText(caption));
};

// The nearest heading before the element: its own elder siblings, then its parent's, and so on.
function headingOver(el, memo) {
  const passed = [];
  let found = "";
  for (let at = el; at !== null && tagOf(at) !== "body"; at = parentOf(at)) {
    const known = memo.over.get(at);
    if (known !== undefined) {
      found = known;
      break;
    }
    passed.push(at);
    found = headingBefore(at, memo);
    if (found !== "") break;
  }
  for (const at of passed) memo.over.set(at, found);
  return found;
}

function headingBefore(el, memo) {
  const seen = [];
  let found = "";
  for (let at = previousElement(el); at !== null; at = previousElement(at)) {
    const known = memo.before.get(at);
    if (known !== undefined) {
      found = known;
      break;
    }
    const heading = headingIn(at);
    found = heading === null ? "" : withoutCount(labelText(heading));
    if (found !== "") break;
    seen.push(at);
  }
  // Many siblings ask the same question: the answer for a sibling without a heading is the answer of those before it.
  for (const at of seen) memo.before.set(at, found);
  return found;
}

function headingIn(el) {
  if (matches(el, HEADINGS)) return rendered(el) ? el : null;
  const tag = tagOf(el);
  if (tag === "header" || tag === "hgroup") return query(el, HEADINGS);
  const first = tag === "div" && elementCount(el) <= 3 ? firstElement(el) : null;
  return first !== null && matches(first, HEADINGS) ? first : null;
}
