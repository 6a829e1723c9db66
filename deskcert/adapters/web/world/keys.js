// Gestures: keys, with the default action that a trusted key would have; and which gesture is whose.

const KEYS = {
  Enter: { key: "Enter", code: "Enter", keyCode: 13, which: 13, charCode: 13 },
  Space: { key: " ", code: "Space", keyCode: 32, which: 32, charCode: 32 },
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
  if (goesOn && name === "Enter" && pressesLikeClick(el)) act.do("click", () => activate(el));
  else if (goesOn) {
    goesOn = act.send("keypress", event("keypress", { charCode, keyCode: charCode }));
    if (goesOn) typed(act, name);
  }
  if (!isConnected(el)) return;
  const released = act.send("keyup", event("keyup"));
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
  if (!isReadonly(act.el)) act.do("input", () => execCommand(document, "insertText", false, text));
}

const SEQUENCES = {
  click, press, hover, focus, scroll, type, clear, select, check: click, uncheck: click, toggle: click, expand: click,
  collapse: click, "set-value": (act) => setValue(act), "double-click": (act) => clickTimes(act, 2),
  "triple-click": (act) => clickTimes(act, 3), "right-click": rightClick, "scroll-to": scrollTo,
};
