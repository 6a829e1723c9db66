// States: true, false, or left out where the state does not apply to such an element.

const FIELD_TYPES = new Set(["email", "search", "tel", "text", "url", "password", "number", "date", "datetime-local",
  "month", "week", "time", "color", "range"]);
const READONLY_TYPES = new Set(["email", "search", "tel", "text", "url", "password", "number", "date", "datetime-local",
  "month", "week", "time"]);
const CHECKABLE = new Set(["checkbox", "radio", "switch", "menuitemcheckbox", "menuitemradio"]);
const SEEN = { visibilityProperty: true, opacityProperty: true, contentVisibilityAuto: false };
const inputChecked = getter(HTMLInputElement.prototype, "checked");
const inputMixed = getter(HTMLInputElement.prototype, "indeterminate");
const optionSelected = getter(HTMLOptionElement.prototype, "selected");
const filesOf = getter(HTMLInputElement.prototype, "files");

const ariaBool = (el, name) => {
  const value = attr(el, name);
  return value === "true" ? true : value === "false" ? false : null;
};

function isField(el) {
  const tag = htmlTag(el);
  return tag === "input" ? FIELD_TYPES.has(inputType(el)) || isEditingHost(el) : tag === "textarea" || isEditingHost(el);
}

// `seen`: that nothing hides it has been asked already.
function statesOf(el, role, seen = false) {
  const states = { visible: seen ? hasArea(el) : isVisible(el), enabled: isEnabled(el), focused: isFocused(el) };
  const put = (key, value) => {
    if (value !== null && value !== undefined) states[key] = value;
  };
  const field = isField(el);
  if (field) {
    states.readonly = isReadonly(el);
    states.editable = !states.readonly;
    states.secure = isSecure(el);
  } else if (EDITABLE_ROLES.has(role)) put("readonly", ariaBool(el, "aria-readonly"));
  if (field || takesRequired(el)) states.required = hasAttr(el, "required") || ariaBool(el, "aria-required") === true;
  if (CHECKABLE.has(role)) checkedStates(el, put);
  put("expanded", expandedOf(el));
  put("selected", isNativeOption(el) ? optionSelected(el) : ariaBool(el, "aria-selected"));
  // A native box that is made a button is pressed when it is checked (HTML-AAM).
  const box = role === "button" && htmlTag(el) === "input" && inputType(el) === "checkbox";
  put("pressed", box ? inputChecked(el) : ariaBool(el, "aria-pressed"));
  return states;
}

function takesRequired(el) {
  const tag = htmlTag(el);
  return tag === "select" || (tag === "input" && !BUTTON_INPUTS.has(inputType(el)));
}

function checkedStates(el, put) {
  if (htmlTag(el) === "input") {
    put("checked", inputChecked(el));
    put("indeterminate", inputMixed(el) ? true : null);
    return;
  }
  const value = attr(el, "aria-checked");
  put("checked", value === "true");
  put("indeterminate", value === "mixed" ? true : null);
}

function expandedOf(el) {
  if (tagOf(el) === "summary" && isSummary(el)) return detailsOpen(parentNode(el));
  return ariaBool(el, "aria-expanded");
}

const isReadonly = (el) =>
  ariaBool(el, "aria-readonly") === true ||
  (hasAttr(el, "readonly") && (htmlTag(el) === "textarea" || (htmlTag(el) === "input" && READONLY_TYPES.has(inputType(el)))));

function isSecure(el) {
  if (htmlTag(el) === "input" && inputType(el) === "password") return true;
  const autocomplete = attr(el, "autocomplete");
  if (autocomplete && /(^|\s)(current-password|new-password|one-time-code|cc-csc|cc-number)(\s|$)/.test(autocomplete)) return true;
  return styleSays("security") && (styleOf(el).webkitTextSecurity || "none") !== "none";
}

const isFocused = (el) => isAmong(el, ":focus");

// Something of it can be seen: a box with an area, and no ancestor that hides it. `aria-hidden` hides from screen readers only.
function isVisible(el) {
  if (tagOf(el) === "option" || tagOf(el) === "optgroup") {
    const owner = closest(el, "select");
    return owner !== null && isVisible(owner) && !hasAttr(el, "hidden");
  }
  if (!checkVisibility(el, SEEN)) return false;
  return hasArea(el);
}

function hasArea(el) {
  const box = rectOf(el);
  if (box.width > 0 && box.height > 0) return true;
  // An inline link around a floating picture has no area of its own.
  for (const child of childrenOf(el)) {
    if (!isElement(child)) continue;
    const inner = rectOf(child);
    if (inner.width > 0 && inner.height > 0 && checkVisibility(child, SEEN)) return true;
  }
  return false;
}

// Disabled by HTML (with the first legend's exception), by ARIA on itself or around it, by a custom element's attribute,
// by being part of a disabled button, by `inert`, or by a modal dialog elsewhere.
function isEnabled(el) {
  const control = labelControl(el);
  if (control !== null && disabledAt(control)) return false;
  return !disabledAt(el) && !disabledAround(parentOf(el)) && !behindModal(el);
}

function disabledAround(el) {
  if (el === null) return false;
  let found = look?.disabled.get(el);
  if (found === undefined) {
    found = disabledAt(el, true) || disabledAround(parentOf(el));
    look?.disabled.set(el, found);
  }
  return found;
}

const DISABLEABLE = new Set(["button", "input", "optgroup", "option", "select", "textarea"]);
const DISABLES_INSIDE = new Set(["button", "select", "optgroup"]);

function disabledAt(el, around = false) {
  if (attr(el, "aria-disabled") === "true" || hasAttr(el, "inert")) return true;
  const tag = tagOf(el);
  if (tag.includes("-") && hasAttr(el, "disabled") && attr(el, "disabled") !== "false") return true;
  // A disabled fieldset is not disabling by itself: its controls match :disabled, those in its first legend do not.
  if (around ? !DISABLES_INSIDE.has(tag) : !(DISABLEABLE.has(tag) || tag.includes("-"))) return false;
  return isAmong(el, ":disabled");
}

// A live collection: asking it costs nothing while the page has no dialog.
const dialogs = method(Document.prototype, "getElementsByTagName")(document, "dialog");

// All that is outside the modal dialog on top is inert: other dialogs, and popovers that are not in it, as well.
function behindModal(el) {
  if (dialogs.length === 0) return false;
  const top = modalOnTop();
  return top !== null && !flatContains(top, el);
}

function modalOnTop() {
  const modal = [...dialogs].filter((d) => matches(d, ":modal"));
  // Which of several was opened last is not told; but a pointer gets to that one alone.
  if (modal.length > 1) return modal.find((d) => pointsOf(d).some(([x, y]) => flatContains(d, deepestAt(x, y)))) ?? modal.at(-1);
  return modal[0] ?? null;
}

// Capabilities that make sense on the element; whether it is visible or enabled now is another question.
const ACTIONS = ["upload", "click", "set-value", "type", "select", "check", "toggle", "expand", "press"];
const [UPLOAD, CLICK, SET_VALUE, TYPE, SELECT, CHECK, TOGGLE, EXPAND, PRESS] = ACTIONS.map((_, i) => 1 << i);
const actionsOf = (el, role) => wordsOf(ACTIONS, actionBits(el, role));
const wordsOf = (words, bits) => words.filter((_, i) => bits & (1 << i));

function actionBits(el, role) {
  const tag = htmlTag(el);
  let bits = tag === "option" ? 0 : CLICK;
  if (tag === "input" && inputType(el) === "file") bits = UPLOAD;
  if (isField(el)) bits |= tag !== "input" || TYPED.has(inputType(el)) ? SET_VALUE | TYPE : SET_VALUE;
  if (tag === "select") bits |= SELECT;
  if (role === "radio" || role === "menuitemradio") bits |= CHECK;
  else if (CHECKABLE.has(role) || hasAttr(el, "aria-pressed")) bits |= TOGGLE;
  if (expandedOf(el) !== null) bits |= EXPAND;
  return isFocusable(el) || isEditingHost(el) ? bits | PRESS : bits;
}

const TYPED = new Set(["email", "search", "tel", "text", "url", "password", "number"]);

// The capability that a command needs, where it is not called the same; `null`: every element that is there.
const CAPABILITY = { "double-click": ["click"], "triple-click": ["click"], "right-click": ["click"], hover: null, scroll: null, drag: null,
  "scroll-to": null, focus: ["press"], clear: ["set-value"], check: ["toggle", "check"], uncheck: ["toggle"], collapse: ["expand"] };

function offers(el, role, command) {
  const needed = CAPABILITY[command] === undefined ? [command] : CAPABILITY[command];
  return needed === null || actionsOf(el, role).some((action) => needed.includes(action));
}

// An empty region keeps a line end, so that there is a line to write in.
const innerText = getter(HTMLElement.prototype, "innerText");
function regionText(el) {
  const text = innerText(el);
  return text === "\n" ? "" : text;
}

// A field's value. A secure one is withheld here, before it leaves the page.
function valueOf(el, role) {
  switch (htmlTag(el)) {
    case "input": if (inputType(el) === "file") return [...(filesOf(el) ?? [])].map((f) => f.name + " (" + f.size + " bytes)").join(", ");
      return FIELD_TYPES.has(inputType(el)) && !isSecure(el) ? inputValue(el) : null;
    case "textarea": return isSecure(el) ? null : areaValue(el);
    case "select": return [...selectedOptions(el)].map((o) => optionText(o)).join(", ");
  }
  if (isEditingHost(el)) return isSecure(el) ? null : regionText(el);
  if (role === "combobox" && isHTML(el) && query(el, "input, textarea") === null) return orNull(clean(innerText(el)));
  if (role === "slider" || role === "spinbutton" || role === "progressbar" || role === "meter" || role === "scrollbar")
    return attr(el, "aria-valuetext") ?? attr(el, "aria-valuenow") ?? attr(el, "value");
  return null;
}
