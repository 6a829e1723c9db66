// Gestures: what changes a field's value.

function setValue(act, value = act.request.value) {
  const { el } = act;
  if (!isFocused(el)) act.do("focus", () => takeFocus(el));
  if (isEditingHost(el)) {
    if (!hasFocus(el)) act.stop("beforeinput", ["states.focused"]);
    act.do("beforeinput", () => {
      getSelection().selectAllChildren(el);
      execCommand(document, value === "" ? "delete" : "insertText", false, value);
    });
    act.sent.push("input");
    return;
  }
  const edit = { bubbles: true, composed: true, inputType: "insertReplacementText", data: value };
  if (!act.send("beforeinput", new InputEvent("beforeinput", { ...edit, cancelable: true }))) return;
  act.check("input");
  setterOf(el)(el, value);
  act.send("input", new InputEvent("input", edit));
  act.send("change", new Event("change", { bubbles: true }));
}

const setter = (proto) => bindCall(Object.getOwnPropertyDescriptor(proto, "value").set);
const setInput = setter(HTMLInputElement.prototype);
const setArea = setter(HTMLTextAreaElement.prototype);
const setterOf = (el) => (el instanceof HTMLTextAreaElement ? setArea : setInput);


// What is inserted goes to whatever has the focus, and a handler of the page may just have moved it.
function insertText(act, text) {
  if (!hasFocus(act.el)) act.stop("input", ["states.focused"]);
  act.do("input", () => execCommand(document, "insertText", false, text));
}

// In an editable region the focus may stand further in.
const hasFocus = (el) => isFocused(el) || (isEditingHost(el) && matches(el, ":focus-within"));

const clear = (act) => setValue(act, "");

// Character by character at the end of what is there, each with its keys, as a person's typing looks to the page.
function type(act) {
  const { el } = act;
  if (!isFocused(el)) act.do("focus", () => takeFocus(el));
  if (!isFocused(el)) act.stop("keydown", ["states.focused"]);
  getSelection().modify("move", "forward", "documentboundary");
  for (const character of act.request.value) {
    // A line end is text here, never the Enter key, which sends what was written in many a page; that is `press`.
    const keyed = character !== "\n";
    const [keyCode, charCode] = [character.toUpperCase().charCodeAt(0), character.charCodeAt(0)];
    const event = (name, more) => new KeyboardEvent(name, { bubbles: true, cancelable: true, composed: true, view: window, key: character, keyCode, ...more });
    if (!keyed || (act.send("keydown", event("keydown")) && act.send("keypress", event("keypress", { charCode, keyCode: charCode }))))
      insertText(act, character);
    if (!isConnected(el)) act.stop("keyup", ["attached"]);
    if (keyed) act.send("keyup", event("keyup"));
  }
}

// Options of a native list, by their label or, where no label is so, by their value. One line for each asked option.
const optionsOf = getter(HTMLSelectElement.prototype, "options");
const optionValue = getter(HTMLOptionElement.prototype, "value");
const optionDisabled = (option) => matches(option, ":disabled");
const setSelected = bindCall(Object.getOwnPropertyDescriptor(HTMLOptionElement.prototype, "selected").set);
const setIndex = bindCall(Object.getOwnPropertyDescriptor(HTMLSelectElement.prototype, "selectedIndex").set);

function optionsAsked(el, value) {
  const all = [...optionsOf(el)].filter((option) => !optionDisabled(option));
  return value.split("\n").map((asked) => {
    const labelled = all.filter((option) => clean(optionText(option)) === clean(asked));
    return labelled.length ? labelled : all.filter((option) => optionValue(option) === asked);
  });
}

function select(act) {
  const { el } = act;
  if (!isFocused(el)) act.do("focus", () => takeFocus(el));
  act.check("input");
  const wanted = new Set(optionsAsked(el, act.request.value).map((found) => found[0]));
  if (selectMultiple(el)) for (const option of optionsOf(el)) setSelected(option, wanted.has(option));
  else setIndex(el, [...optionsOf(el)].findIndex((option) => wanted.has(option)));
  act.send("input", new Event("input", { bubbles: true, composed: true }));
  act.send("change", new Event("change", { bubbles: true }));
}
