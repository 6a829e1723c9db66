// Names: the accessible name (accname 1.2 with HTML-AAM), and every other text by which a person could know a control.
// One choice of our own: what stands in an editable field that is embedded in a label is not part of the name, because
// values of fields are secrets. Chromium includes it.

const inputValue = getter(HTMLInputElement.prototype, "value");
const areaValue = getter(HTMLTextAreaElement.prototype, "value");
const selectedOptions = getter(HTMLSelectElement.prototype, "selectedOptions");
const optionText = getter(HTMLOptionElement.prototype, "label");
const BUTTON_INPUTS = new Set(["button", "submit", "reset", "image"]);
const EDITABLE_ROLES = new Set(["textbox", "searchbox", "spinbutton"]);
const UNREAD_TAGS = new Set(["script", "style", "template", "noscript", "head"]);

const ariaHidden = (el) => attr(el, "aria-hidden") === "true";

function nameOf(el, role, hidden = !rendered(el)) {
  return clean(alternative(el, { via: "target", hiddenToo: hidden, seen: new Set(), role }));
}

// The numbers are the steps of accname 1.2, section 4.3.2.
function alternative(el, how) {
  if (how.seen.has(el)) return "";
  how.seen.add(el);
  if (UNREAD_TAGS.has(tagOf(el))) return "";
  if (how.via === "content" && !how.hiddenToo && (ariaHidden(el) || !rendered(el))) return ariaHidden(el) ? "" : shownInside(el, how); // 2A
  if (how.via !== "reference") { // 2B
    const text = textOfRefs(el, "aria-labelledby");
    if (text) return text;
  }
  const role = how.via === "target" && how.role ? how.role : roleOf(el);
  if (how.via !== "target") { // 2C
    const embedded = embeddedValue(el, role, how);
    if (embedded !== null) return embedded;
  }
  const label = attr(el, "aria-label"); // 2D
  if (label && label.trim()) return label;
  const own = nativeName(el, how); // 2E
  if (own && own.trim()) return own;
  if (how.via !== "target" || NAMED_BY_CONTENT.has(role)) { // 2F
    const text = contentText(el, how);
    if (text.trim()) return text;
  }
  return attr(el, "title") || fieldHint(el); // 2I
}

// What an element that is only `visibility: hidden` holds can be visible again.
function shownInside(el, how) {
  if (styleOf(el).visibility === "visible" || !checkVisibility(el)) return "";
  return childrenOf(el).filter(isElement).map((child) => apart(child, alternative(child, { ...how, role: undefined }))).join("");
}

const textOfRefs = (el, name) => (attr(el, name) ? idRefs(el, name).map(referenced).filter(Boolean).join(" ") : "");

function referenced(el) {
  const hidden = ariaHidden(el) || !rendered(el);
  return clean(alternative(el, { via: "reference", hiddenToo: hidden, seen: new Set() }));
}

function fieldHint(el) {
  const takesHint = htmlTag(el) === "input" || htmlTag(el) === "textarea";
  return (takesHint && attr(el, "placeholder")) || attr(el, "aria-placeholder") || "";
}

function embeddedValue(el, role, how) {
  if (how.via === "reference") return null;
  if (EDITABLE_ROLES.has(role)) return attr(el, "aria-label") || "";
  if (htmlTag(el) === "select") return [...selectedOptions(el)].map((o) => optionText(o)).join(" ");
  if (role === "slider" || role === "scrollbar")
    return attr(el, "aria-valuetext") || attr(el, "aria-valuenow") || (el instanceof HTMLInputElement ? inputValue(el) : "");
  return null;
}

function nativeName(el, how) {
  const tag = tagOf(el);
  if (how.via !== "reference") {
    const labels = labelsOf(el);
    if (labels.length !== 0) {
      const text = labels
        .map((l) => clean(alternative(l, { via: "content", hiddenToo: false, seen: new Set([el]) })))
        .filter(Boolean).join(" ");
      if (text) return text;
    }
  }
  switch (tag) {
    case "input": return buttonText(el);
    case "img": case "area": return attr(el, "alt");
    case "fieldset": return childText(el, "legend", how);
    case "table": return childText(el, "caption", how);
    case "figure": return childText(el, "figcaption", how);
    case "option": return optionText(el);
    case "optgroup": return attr(el, "label");
    default: return isHTML(el) ? "" : childText(el, "title", { ...how, hiddenToo: true }); // a drawing, or a part of one
  }
}

// The text on a button that is an `input`; its default where it has none (HTML, "default label").
function buttonText(el) {
  const type = inputType(el);
  if (!BUTTON_INPUTS.has(type)) return type === "file" ? "" : "";
  if (type === "image") return attr(el, "alt") || attr(el, "value") || attr(el, "title") || "Submit";
  const value = attr(el, "value");
  if (value !== null) return inputValue(el);
  return type === "submit" ? "Submit" : type === "reset" ? "Reset" : "";
}

function childText(el, tag, how) {
  const child = query(el, ":scope > " + tag);
  return child === null ? "" : clean(contentText(child, { ...how, via: "content", seen: new Set() }));
}

const LABELABLE = new Set(["button", "input", "meter", "output", "progress", "select", "textarea"]);
const labelLists = Object.fromEntries(
  [["button", HTMLButtonElement], ["input", HTMLInputElement], ["meter", HTMLMeterElement], ["output", HTMLOutputElement],
    ["progress", HTMLProgressElement], ["select", HTMLSelectElement], ["textarea", HTMLTextAreaElement]]
    .map(([tag, type]) => [tag, getter(type.prototype, "labels")]),
);

const NONE = Object.freeze([]);

function labelsOf(el) {
  const tag = tagOf(el);
  if (!LABELABLE.has(tag) || !isHTML(el)) return NONE;
  if (look !== null && (look.whole || rootOf(el) === document)) return labelsByControl().get(el) ?? NONE;
  const list = labelLists[tag](el);
  return list === null ? NONE : [...list];
}

// A control's own list goes through the whole document each time: for all controls that is quadratic.
function labelsByControl() {
  if (look.labels !== null) return look.labels;
  look.labels = new Map();
  for (const label of documentAll("label")) {
    const control = labelControl(label);
    if (control === null) continue;
    const known = look.labels.get(control);
    if (known === undefined) look.labels.set(control, [label]);
    else known.push(label);
  }
  return look.labels;
}

function contentText(el, how) {
  if (shadowOf(el) !== null) metShadow();
  let text = pseudoText(el, "::before");
  const only = hasAttr(el, "aria-owns") ? null : onlyText(el);
  if (only !== null) return text + only + pseudoText(el, "::after");
  const children = childrenOf(el);
  for (const child of hasAttr(el, "aria-owns") ? [...children, ...idRefs(el, "aria-owns")] : children) {
    if (isText(child)) text += textData(child);
    else if (isElement(child)) {
      const part = alternative(child, { ...how, via: "content", role: undefined });
      text += apart(child, part);
    }
  }
  return text + pseudoText(el, "::after");
}

// Text of an inline element runs on; anything with a box of its own stands apart by a blank.
function isInline(el) {
  const { display } = styleOf(el);
  return display === "inline" || display === "contents";
}

const apart = (el, part) => (tagOf(el) === "br" ? " " : part === "" || isInline(el) ? part : " " + part + " ");

const isOtherControl = (el) => {
  const role = roleOf(el);
  return INTERACTIVE_ROLES.has(role) && role !== "option";
};

const MOST_TEXT = 10_000;

// `alone`: the target itself, which a person knows by all that stands on it where it has no text of its own.
function namesOf(el, role, alone = false) {
  const names = {};
  const put = (key, read) => {
    try {
      const text = read();
      if (text !== null && text !== undefined && text !== "")
        names[key] = text.length > MOST_TEXT ? { unknown: "longer than " + MOST_TEXT + " characters" } : text;
    } catch (error) {
      names[key] = { unknown: String(error) };
    }
  };
  put("accessible", () => nameOf(el, role));
  put("text", () => (hasOwnText(el, role) ? clean(visibleText(el)) || (alone ? clean(visibleText(el, false)) : null) : null));
  put("title", () => titleText(el));
  put("alt", () => altText(el));
  put("value", () => (htmlTag(el) === "input" && BUTTON_INPUTS.has(inputType(el)) ? valueText(el) : null));
  put("description", () => descriptionOf(el));
  put("placeholder", () => clean(fieldHint(el)));
  return names;
}

const hasOwnText = (el, role) =>
  !EDITABLE_ROLES.has(role) && !isEditingHost(el) && !(el instanceof HTMLSelectElement) && !(el instanceof HTMLInputElement);

// Elements inside that match, without those that belong to another control inside.
const ownInside = (el, selector) => [...queryAll(el, selector)].filter((inner) => !inOtherControl(inner, el));

function inOtherControl(inner, el) {
  for (let at = inner; at !== null && at !== el; at = parentOf(at)) if (isOtherControl(at)) return true;
  return false;
}

// Its own alternative text, or that of the pictures inside it.
function altText(el) {
  const own = attr(el, "alt");
  if (own !== null) return clean(own);
  const parts = ownInside(el, "img[alt], area[alt], svg > title")
    .map((inner) => (tagOf(inner) === "title" ? inner.textContent : attr(inner, "alt")));
  return clean(parts.join(" "));
}

// Its own tip, or that of what is inside it: a pointer over a picture shows the picture's.
const titleText = (el) => clean(attr(el, "title") || ownInside(el, "[title]").map((inner) => attr(inner, "title")).join(" "));

// The text on an input that is a button. An image button's value is sent, and read where its picture is missing.
function valueText(el) {
  const shown = inputType(el) === "image" ? attr(el, "value") : buttonText(el);
  return shown ? clean(turned(el) + shown) : null;
}

function descriptionOf(el) {
  const text = textOfRefs(el, "aria-describedby");
  return clean(text || attr(el, "aria-description") || "");
}
