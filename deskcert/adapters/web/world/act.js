// The act: E is collected again and compared before every single event, in one task, so nothing can change in between
// except by what our own events make the page do.

const POINTER = { bubbles: true, cancelable: true, composed: true, view: window, button: 0, detail: 0 };
let armed = null; // the dispatch that is under way: {number, el, hit, reached, report}

const REPORTED = ["pointerover", "pointerdown", "mousedown", "mouseup", "click", "keydown", "keypress", "keyup",
  "beforeinput", "input", "change"];
const TOLD_OUT_OF_TASK = new Set(["click", "keydown", "input"]);

// On the window, in the capture phase, before any listener of the page: says at once, out of the task, that the event arrived.
function onEvent(event) {
  if (armed === null) return;
  const first = event.composedPath()[0];
  const same = first === armed.el;
  // The first click, key or input is the one that was sent; a label's control gets a second click of its own.
  if (armed.hit === null || (event.type === armed.main && armed.hit.type !== armed.main))
    armed.hit = { type: event.type, same_as_target: same, el: new WeakRef(first) };
  if (!same) return;
  if (!armed.reached || TOLD_OUT_OF_TASK.has(event.type)) tell({ number: armed.number, reached: event.type });
  armed.reached = true;
}

function tell(note) {
  globalThis.deskcert_reached?.(JSON.stringify(note));
}

function listen() {
  for (const type of REPORTED) addEventListener(type, onEvent, { capture: true, passive: true });
}

class Stopped extends Error {}

function perform(id, request) {
  const el = nodeOf(id);
  if (el === null) return { end: "not_sent", error: "the element was removed" };
  if (!actionsOf(el, roleOf(el)).includes(request.command))
    return { end: "not_sent", error: request.command + " is not possible on this element" };
  const act = new Act(el, request);
  listen(); // document.open() takes listeners away; adding the same ones again changes nothing
  armed = { number: request.number, el, hit: null, reached: false, main: MAIN_EVENT[request.command] };
  try {
    act.begin();
    if (act.end === null) SEQUENCES[request.command](act);
    act.end ??= "completed";
  } catch (error) {
    if (!(error instanceof Stopped)) {
      act.error = String(error);
      act.end = act.sent.length ? "no_answer" : "not_sent";
    }
  } finally {
    act.finish(armed);
    armed = null;
  }
  return act.report;
}

const MAIN_EVENT = { click: "click", press: "keydown", "set-value": "input" };

class Act {
  constructor(el, request) {
    this.el = el;
    this.request = request;
    this.expected = JSON.parse(request.expected);
    this.sent = [];
    this.end = null;
    this.error = null;
    this.scrolled = false;
    this.differing = [];
    this.stoppedBefore = null;
    this.live = null;
    this.look();
    this.report = null;
  }

  look() {
    const { evidence, point } = evidenceOf(this.el, this.request.command, this.request.key);
    this.evidence = evidence;
    this.point = point;
  }

  // Before the first event: E as the decision saw it, or nothing is sent.
  begin() {
    let differing = differences(this.expected, comparedOf(this.evidence, this.request.command), false);
    if (differing.length === 0 && this.evidence.hit_test.status === "deferred" && this.pointerLike()) {
      scrollIntoView(this.el, { block: "center", inline: "center", behavior: "instant" });
      this.scrolled = true;
      this.look();
      differing = differences(this.expected, comparedOf(this.evidence, this.request.command), false);
    }
    if (differing.length === 0 && this.pointerLike() && !this.hitAllowed()) differing = ["hit_test"];
    if (differing.length === 0) return;
    this.end = "changed";
    this.differing = differing;
    this.live = this.evidence;
  }

  pointerLike() {
    return this.request.command === "click";
  }

  hitAllowed() {
    const now = this.evidence.hit_test.status;
    return now === "pass" || (now === this.expected.hit && now !== "deferred");
  }

  // Before every further event. Throws `Stopped` where something differs.
  check(next) {
    if (this.sent.length === 0) return;
    if (!isConnected(this.el)) this.stop(next, ["attached"]);
    this.look();
    const differing = differences(this.expected, comparedOf(this.evidence, this.request.command), true);
    if (differing.length === 0 && this.pointerLike() && !this.hitAllowed()) differing.push("hit_test");
    if (differing.length) this.stop(next, differing);
  }

  stop(next, differing) {
    this.end = this.sent.length ? "stopped" : "changed";
    this.stoppedBefore = this.sent.length ? next : null;
    this.differing = differing;
    this.live = isConnected(this.el) ? this.evidence : null;
    throw new Stopped();
  }

  // Sends one event; false where the page asked not to do what it stands for.
  send(type, event, target = this.el) {
    this.check(type);
    this.sent.push(type);
    return dispatch(target, event);
  }

  do(type, run) {
    this.check(type);
    this.sent.push(type);
    run();
  }

  finish(seen) {
    const hit = seen.hit;
    this.report = {
      end: this.end,
      reached: seen.reached,
      events_sent: this.sent,
      stopped_before: this.stoppedBefore,
      differences: this.differing,
      live: this.live,
      compared: this.live && JSON.stringify(comparedOf(this.live, this.request.command)),
      hit: hit && describeHit(hit, this.expected),
      preparatory_scroll: this.scrolled,
      error: this.error,
    };
  }
}

// The target is described as it was when the event went out, another element as it is now.
function describeHit(hit, expected) {
  if (hit.same_as_target) return { role: expected.role, name: textOrNull(expected.names.accessible), same_as_target: true };
  const el = hit.el.deref();
  if (!el || !isElement(el)) return { role: "generic", name: null, same_as_target: false };
  const role = roleOf(el);
  return { role, name: orNull(nameOf(el, role)), same_as_target: false };
}
const textOrNull = (value) => (typeof value === "string" ? value : null);

function pointerEvent(act, type, more) {
  const [x, y] = act.point ?? pointsOf(act.el)[0];
  const at = { ...POINTER, clientX: x, clientY: y, screenX: x + screenX, screenY: y + screenY, ...more };
  return type.startsWith("pointer")
    ? new PointerEvent(type, { ...at, pointerId: 1, pointerType: "mouse", isPrimary: true })
    : new MouseEvent(type, at);
}

function click(act) {
  const quiet = { bubbles: false, cancelable: false };
  const over = (type, more) => act.send(type, pointerEvent(act, type, more));
  over("pointerover");
  over("pointerenter", quiet);
  over("mouseover");
  over("mouseenter", quiet);
  over("pointermove");
  over("mousemove");
  const mouse = over("pointerdown", { buttons: 1, pressure: 0.5 });
  // A cancelled pointerdown takes the mouse events away, a cancelled mousedown the focus; the click still comes.
  if (mouse && over("mousedown", { buttons: 1, detail: 1 })) focusFor(act);
  over("pointerup");
  if (mouse) over("mouseup", { detail: 1 });
  act.do("click", () => activate(act.el));
}

const activate = (el) =>
  isHTML(el) ? clickElement(el) : dispatch(el, new PointerEvent("click", { ...POINTER, pointerId: -1 }));

// A pointer gives the focus to the nearest element that takes it; a label gives it later, to its control.
function focusFor(act) {
  let at = act.el;
  while (at !== null && !isFocusable(at) && !isEditingHost(at) && labelControl(at) === null) at = parentOf(at);
  if (at === null || labelControl(at) !== null || isFocused(at)) return;
  act.do("focus", () => takeFocus(at));
}

function setValue(act) {
  const { el, request } = act;
  if (!isFocused(el)) act.do("focus", () => takeFocus(el));
  if (isEditingHost(el)) {
    act.do("beforeinput", () => {
      getSelection().selectAllChildren(el);
      execCommand(document, request.value === "" ? "delete" : "insertText", false, request.value);
    });
    act.sent.push("input");
    return;
  }
  const edit = { bubbles: true, composed: true, inputType: "insertReplacementText", data: request.value };
  if (!act.send("beforeinput", new InputEvent("beforeinput", { ...edit, cancelable: true }))) return;
  act.check("input");
  setterOf(el)(el, request.value);
  act.send("input", new InputEvent("input", edit));
  act.send("change", new Event("change", { bubbles: true }));
}

const setter = (proto) => bindCall(Object.getOwnPropertyDescriptor(proto, "value").set);
const setInput = setter(HTMLInputElement.prototype);
const setArea = setter(HTMLTextAreaElement.prototype);
const setterOf = (el) => (el instanceof HTMLTextAreaElement ? setArea : setInput);

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

const SEQUENCES = { click, press, "set-value": setValue };
