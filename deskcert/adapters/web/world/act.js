// The act: E is collected again and compared before every single event, in one task, so nothing can change in between
// except by what our own events make the page do.

const POINTER = { bubbles: true, cancelable: true, composed: true, view: window, button: 0, detail: 0 };
let armed = null; // the dispatch that is under way: {number, el, hit, reached, report}

const REPORTED = ["pointerover", "pointerdown", "mousedown", "mouseup", "dragstart", "drop", "click", "dblclick", "contextmenu", "focus", "keydown",
  "keypress", "keyup", "beforeinput", "input", "change"];
const TOLD_OUT_OF_TASK = new Set(["click", "contextmenu", "keydown", "input", "dragstart", "drop"]);
const AT_THE_END = new Set(["drop", "mouseup"]); // events of a drag that are its other element's

// On the window, in the capture phase, before any listener of the page: says at once, out of the task, that the event arrived.
function onEvent(event) {
  if (armed === null) return;
  const first = event.composedPath()[0];
  if (concealsTarget(first)) return; // the listener inside hears what it is
  const target = armed.to && AT_THE_END.has(event.type) ? armed.to : armed.el;
  const same = armed.physical ? arrivedAt(first, target, event.type) : first === target;
  // The first click, key or input is the one that was sent; a label's control gets a second click of its own.
  if (armed.hit === null || (event.type === armed.main && armed.hit.type !== armed.main))
    armed.hit = { type: event.type, same_as_target: same, el: new WeakRef(first) };
  if (!same) return;
  if (!armed.reached || TOLD_OUT_OF_TASK.has(event.type)) tell({ number: armed.number, reached: event.type });
  armed.reached = true;
}

// From outside a closed shadow root every event inside seems to be its host's.
const concealsTarget = (first) =>
  anyClosed && first !== armed.el && isElementNode(first) && closedRoots.has(first) && flatContains(first, armed.el);
const isElementNode = (target) => target instanceof Node && isElement(target);

// Where an event of the keyboard goes, through closed shadow roots as well.
function keyTarget(event) {
  let at = event.composedPath()[0];
  for (let root = anyClosed && closedRoots.get(at); root; root = closedRoots.get(at)) {
    const inner = focusedIn(root);
    if (inner === null) break;
    at = inner;
  }
  return at;
}
const focusedIn = getter(ShadowRoot.prototype, "activeElement");

function adopt(host, root) {
  closedRoots.set(host, root);
  anyClosed = true;
  listenIn(root);
}

function tell(note) {
  globalThis.deskcert_reached?.(JSON.stringify(note));
}

function listen() {
  listenForPointer();
  for (const type of ["keydown", "keypress", "keyup"]) addEventListener(type, onKey, { capture: true, passive: false });
  listenIn(globalThis);
}

const hear = method(EventTarget.prototype, "addEventListener");
function listenIn(place) {
  for (const type of REPORTED) hear(place, type, onEvent, { capture: true, passive: true });
}

// Trusted keys go to whatever has the focus when they arrive. One that arrives elsewhere is stopped before the page sees it.
// Its release follows the focus that the key itself has moved, as a person's does.
function onKey(event) {
  if (armed === null || !armed.keys || !event.isTrusted || performance.now() > armed.until || keyTarget(event) === armed.el) return;
  if (event.type === "keyup" && armed.reached) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  armed.act.end = armed.reached ? "stopped" : "changed";
  armed.act.differing = ["states.focused"];
  armed.act.stoppedBefore = armed.reached ? event.type : null;
  armed.act.live = armed.reached ? null : armed.act.evidence;
}

class Stopped extends Error {}

function perform(id, request) {
  const el = nodeOf(id);
  if (el === null) return { end: "not_sent", error: "the element was removed" };
  if (request.to && nodeOf(request.to) === null) return { end: "not_sent", error: "the element to drag to was removed" };
  if (!offers(el, roleOf(el), request.command))
    return { end: "not_sent", error: request.command + " is not possible on this element" };
  const act = request.to ? new Drag(el, request) : new Act(el, request);
  listen(); // document.open() takes listeners away; adding the same ones again changes nothing
  armed = { number: request.number, el, to: act.to, hit: null, reached: false, main: MAIN_EVENT[request.command] ?? "click" };
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

// For what only the browser itself can do (files): compared first, then watched until `disarm`. Not one task, so what the
// page does in between is not seen before, only reported.
function arm(id, request) {
  const el = nodeOf(id);
  if (el === null) return { end: "not_sent", error: "the element was removed" };
  if (request.to && nodeOf(request.to) === null) return { end: "not_sent", error: "the element to drag to was removed" };
  if (!offers(el, roleOf(el), request.command)) return { end: "not_sent", error: request.command + " is not possible on this element" };
  listen();
  if ((request.physical || request.command === "press") && !hearsFirst())
    return { end: "not_sent", late: true, error: "this document was loaded before the guard came to it" };
  const act = request.to ? new Drag(el, request) : new Act(el, request);
  act.begin();
  const physical = request.physical && request.command !== "type";
  const keys = request.command === "press" || request.command === "type";
  if (act.end === null && keys) {
    takeFocus(el);
    if (request.command === "type") getSelection().modify("move", "forward", "documentboundary");
    if (!isFocused(el)) [act.end, act.differing, act.live] = ["changed", ["states.focused"], act.evidence];
  }
  const { number, command } = request;
  armed = { number, el, to: act.to, keys, physical, hit: null, reached: false, main: MAIN_EVENT[command] ?? (act.to ? "mouseup" : "click"), act,
    until: performance.now() + (keys ? 60_000 : 10_000) };
  if (act.end !== null) return disarm();
  const { at, beyond, out } = physical ? hitTest(el) : {};
  return { end: null, at, beyond, out, drop: act.to ? hitTest(act.to) : null };
}

// With one of these a physical action has arrived; a pointer that only came near has not, but for hovering.
const ARRIVED = { hover: new Set(["pointerover", "pointermove", "mousemove"]), scroll: new Set(["wheel"]) };
const PRESSED = new Set(["pointerdown", "mousedown"]);

function disarm() {
  const { act } = armed;
  act.end ??= "completed";
  if (!armed.physical) act.sent = armed.reached ? [armed.main] : [];
  if (act.end === "completed" && armed.physical && !act.sent.some((type) => (ARRIVED[act.request.command] ?? PRESSED).has(type)))
    act.end = "no_answer";
  if (act.end === "completed" && armed.keys && !armed.reached) act.end = "no_answer";
  act.finish(armed);
  armed = null;
  return act.report;
}

const MAIN_EVENT = { upload: "change",  press: "keydown", "set-value": "input", clear: "input", type: "input", select: "change", focus: "focus",
  hover: "pointerover", "right-click": "contextmenu", scroll: "scroll", "scroll-to": "scroll" }; // all others: "click"

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
    this.to = request.to ? nodeOf(request.to) : undefined; // where a drag ends
    this.look();
    this.report = null;
  }

  look() {
    const { evidence, point } = evidenceOf(this.el, this.request.command, this.request.key, this.request.value, this.to);
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
    return POINTER_LIKE.has(this.request.command);
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

  // What belongs to the event before it, whose effect is that another option would come next.
  own(type, event) {
    this.sent.push(type);
    return dispatch(this.el, event);
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
      hit: hit && describeHit(hit, this.to && AT_THE_END.has(hit.type) ? this.expected.other : this.expected),
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
