// Gestures: keys, with the default action that a trusted key would have; and which gesture is whose.

const KEYS = {
  Enter: { key: "Enter", code: "Enter", keyCode: 13, which: 13, charCode: 13 },
  Space: { key: " ", code: "Space", keyCode: 32, which: 32, charCode: 32 },
  ArrowLeft: { key: "ArrowLeft", code: "ArrowLeft", keyCode: 37, which: 37, charCode: 0 },
  ArrowUp: { key: "ArrowUp", code: "ArrowUp", keyCode: 38, which: 38, charCode: 0 },
  ArrowRight: { key: "ArrowRight", code: "ArrowRight", keyCode: 39, which: 39, charCode: 0 },
  ArrowDown: { key: "ArrowDown", code: "ArrowDown", keyCode: 40, which: 40, charCode: 0 },
};

function press(act) {
  const name = act.request.key === " " ? "Space" : act.request.key;
  const { charCode, ...key } = KEYS[name];
  const { el } = act;
  if (!isFocused(el)) act.do("focus", () => takeFocus(el));
  if (!isFocused(el)) act.stop("keydown", ["states.focused"]);
  const event = (type, more) =>
    new KeyboardEvent(type, { bubbles: true, cancelable: true, composed: true, view: window, ...key, ...more });
  let goesOn = act.send("keydown", event("keydown"));
  if (name.startsWith("Arrow")) goesOn && arrow(act, name);
  else if (goesOn && name === "Enter" && pressesLikeClick(el)) act.do("click", () => activate(el));
  else if (goesOn) {
    goesOn = act.send("keypress", event("keypress", { charCode, keyCode: charCode }));
    if (goesOn) typed(act, name);
  }
  if (!isConnected(el)) return;
  const released = name.startsWith("Arrow") ? act.own("keyup", event("keyup")) : act.send("keyup", event("keyup"));
  if (goesOn && released && name === "Space" && pressedBySpace(el)) act.do("click", () => activate(el));
}

const pressesLikeClick = (el) =>
  el instanceof HTMLButtonElement || el instanceof HTMLAnchorElement || el instanceof HTMLAreaElement || isSummary(el) ||
  (el instanceof HTMLInputElement && BUTTON_INPUTS.has(inputType(el)));

const pressedBySpace = (el) =>
  el instanceof HTMLButtonElement || isSummary(el) ||
  (el instanceof HTMLInputElement && (BUTTON_INPUTS.has(inputType(el)) || inputType(el) === "checkbox" || inputType(el) === "radio"));

// What a typed Enter or blank does by default.
function typed(act, name) {
  const { el } = act;
  const writes = el instanceof HTMLTextAreaElement || isEditingHost(el);
  if (name === "Space") {
    if (writes || (el instanceof HTMLInputElement && TEXT_LIKE.has(inputType(el)))) insert(act, " ");
    return;
  }
  if (writes) {
    insert(act, "\n");
    return;
  }
  const form = formOfEnter(el);
  if (form === null) return;
  const submitter = defaultSubmitter(form);
  if (submitter !== null) {
    if (!matches(submitter, ":disabled")) act.do("click", () => activate(submitter));
  } else if (submitsWithoutButton(form)) act.do("submit", () => requestSubmit(form));
}

function insert(act, text) {
  if (!isReadonly(act.el)) insertText(act, text);
}

// Arrows: what the browser does by default with a native control. What a page does with them, it does itself.

const FORWARD = new Set(["ArrowRight", "ArrowDown"]);
const stepUp = method(HTMLInputElement.prototype, "stepUp");
const stepDown = method(HTMLInputElement.prototype, "stepDown");

function arrow(act, name) {
  const { el } = act;
  const kind = htmlTag(el) === "input" ? inputType(el) : htmlTag(el);
  const upright = name === "ArrowUp" || name === "ArrowDown";
  if (kind === "radio") {
    const next = nextRadio(el, forwards(el, name));
    if (next !== null) act.do("click", () => { takeFocus(next); activate(next); });
  } else if (kind === "select") {
    const next = selectMultiple(el) ? null : nextOption(el, forwards(el, name));
    if (next !== null) changed(act, () => setIndex(el, next));
  } else if (kind === "range" || (kind === "number" && upright)) {
    // A field of numbers and a slider grow upwards.
    const up = upright ? name === "ArrowUp" : forwards(el, name);
    if (!isReadonly(el)) changed(act, () => (up ? stepUp : stepDown)(el));
  } else if (isField(el)) {
    if (!upright) act.do("caret", () => getSelection().modify("move", name === "ArrowLeft" ? "left" : "right", "character"));
    else if (kind === "textarea" || isEditingHost(el))
      act.do("caret", () => getSelection().modify("move", name === "ArrowUp" ? "backward" : "forward", "line"));
  }
}

const forwards = (el, name) =>
  FORWARD.has(name) !== (styleOf(el).direction === "rtl" && (name === "ArrowLeft" || name === "ArrowRight"));

function changed(act, run) {
  const before = valueOf(act.el, roleOf(act.el));
  act.do("input", run);
  if (valueOf(act.el, roleOf(act.el)) === before) return;
  dispatch(act.el, new Event("input", { bubbles: true, composed: true }));
  act.own("change", new Event("change", { bubbles: true }));
}

// The next of its group that can be chosen, round and round; null where it is alone.
function nextRadio(el, forward) {
  const name = attr(el, "name");
  if (!name) return null;
  const group = [...allUnder(rootOf(el), "input[type=radio]")]
    .filter((r) => attr(r, "name") === name && formOf(r) === formOf(el) && !matches(r, ":disabled"));
  const at = group.indexOf(el);
  return group.length < 2 || at < 0 ? null : group[(at + (forward ? 1 : group.length - 1)) % group.length];
}

// The number of the next option that can be chosen; null at the end.
function nextOption(el, forward) {
  const all = [...optionsOf(el)];
  for (let at = selectedIndex(el) + (forward ? 1 : -1); at >= 0 && at < all.length; at += forward ? 1 : -1)
    if (!optionDisabled(all[at])) return at;
  return null;
}
const selectedIndex = getter(HTMLSelectElement.prototype, "selectedIndex");

// What an arrow would choose is a control of its own; an option of a list is what a person would say was clicked.
function arrowPaths(el, key) {
  const found = /^arrow(left|up|right|down)$/i.exec(key || "");
  if (found === null) return [];
  const name = "Arrow" + found[1][0].toUpperCase() + found[1].slice(1).toLowerCase();
  if (htmlTag(el) === "input" && inputType(el) === "radio") {
    const next = nextRadio(el, forwards(el, name));
    return next === null ? [] : [pathTo("focused", next), ...labelsOf(next).map((label) => pathTo("focused", label))];
  }
  if (htmlTag(el) !== "select" || selectMultiple(el)) return [];
  const at = nextOption(el, forwards(el, name));
  return at === null ? [] : [pathTo("descendant", optionsOf(el)[at])];
}

const SEQUENCES = {
  click, press, hover, focus, scroll, type, clear, select, check: click, uncheck: click, toggle: click, expand: click,
  collapse: click, drag, "set-value": (act) => setValue(act), "double-click": (act) => clickTimes(act, 2),
  "triple-click": (act) => clickTimes(act, 3), "right-click": rightClick, "scroll-to": scrollTo,
};
