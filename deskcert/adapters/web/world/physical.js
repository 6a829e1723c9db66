// Physical input: the browser's own pointer, at a point that was verified. Between the check and the event anything may
// happen, so every event is compared when it comes, before the page sees it; one that would arrive elsewhere never does.

const ENTERING = new Set(["pointerover", "pointerenter", "pointermove", "mouseover", "mouseenter", "mousemove"]);
const LETS_GO = new Set(["pointermove", "mousemove", "pointerup", "mouseup"]);
const TO_ANCESTORS = new Set(["pointerenter", "mouseenter"]); // sent to everything around, one by one
const OF_POINTER = [...ENTERING, "pointerdown", "mousedown", "pointerup", "mouseup", "click", "dblclick", "auxclick", "contextmenu", "wheel",
  "dragstart", "dragenter", "dragover", "drop"];
const COMPARED = new Set(["pointerdown", "mousedown", "dragstart", "contextmenu", "wheel"]); // E as a whole; others the target
let watched = null; // number of an action in another frame: nothing of its input belongs here
let watchedUntil = 0; // a browser that somebody else uses as well is not held for ever, whatever became of the guard

// Whether we hear of every event before the page does: our script was there first, and no document.open() threw its listener
// out. The name of the event that asks is known to nobody else.
const ASKING = "deskcert" + Math.random().toString(36).slice(2);
const begunFirst = documentRoot() === null || (documentState() === "loading" && elementCount(documentRoot()) === 0);
let heard = false;
addEventListener(ASKING, () => { heard = true; }, { capture: true });

function hearsFirst() {
  heard = false;
  dispatch(window, new Event(ASKING));
  return begunFirst && heard;
}

function listenForPointer() {
  for (const type of OF_POINTER) addEventListener(type, onPointer, { capture: true, passive: false });
}

function swallow(event) {
  event.preventDefault();
  event.stopImmediatePropagation();
}

function onPointer(event) {
  if (!event.isTrusted) return;
  if (watched !== null && performance.now() < watchedUntil) {
    if (ENTERING.has(event.type)) return;
    swallow(event);
    tell({ number: watched, strayed: event.type });
    return;
  }
  if (armed === null || !armed.physical || performance.now() > armed.until) return;
  const { act } = armed;
  const { type } = event;
  const first = event.composedPath()[0];
  if (act.end !== null) {
    // A drag that was stopped is let go where it began, so that the page does not go on with it.
    const back = act.to && act.phase === "down" && LETS_GO.has(type) && arrivedAt(first, act.el, type);
    if (back) act.sent.push(type);
    else swallow(event);
    return;
  }
  const end = act.to && type !== "dragstart" && (act.phase === "down" || type === "drop") ? act.to : act.el;
  const differing = arrivedAt(first, end, type) ? changedBy(act, type) : [act.to && end === act.to ? "to.hit_test" : "hit_test"];
  // On the way between the two ends of a drag the pointer meets what it meets.
  if (act.to && ENTERING.has(type) && act.phase !== "before") return;
  if (act.to && (type === "dragenter" || type === "dragover") && !arrivedAt(first, end, type)) return;
  // After its release a drag has no further event; a click on whatever holds both ends is none of the two.
  if (act.to && act.phase === "over") {
    if (type === "click") swallow(event);
    return;
  }
  if (differing.length === 0) {
    act.sent.push(type);
    if (!ENTERING.has(type)) tell({ number: armed.number, physical: type });
    if (act.to && type === "mousedown") act.phase = "down";
    if (act.to && (type === "mouseup" || type === "drop")) act.phase = "over";
    return;
  }
  swallow(event);
  act.end = act.sent.length ? "stopped" : "changed";
  act.stoppedBefore = act.sent.length ? type : null;
  act.differing = differing;
  act.live = isConnected(act.el) ? act.evidence : null;
  tell({ number: armed.number, stopped: type });
}

function arrivedAt(first, el, type) {
  if (!(first instanceof Node) || !isElement(first)) return false;
  if (concealsTarget(first) || countsAs(first, el)) return true;
  return TO_ANCESTORS.has(type) && flatContains(first, el);
}

function changedBy(act, type) {
  if (!isConnected(act.el)) return ["attached"];
  if (!COMPARED.has(type)) return [];
  act.look();
  return differences(act.expected, comparedOf(act.evidence, act.request.command), act.sent.length > 0);
}

// Right before a drag is let go: whether it still ends on what was meant. If not it is stopped, while the button is down.
function mayDrop() {
  if (armed === null) return false;
  const { act } = armed;
  if (act.end !== null) return false;
  let differing = isConnected(act.to) ? [] : ["to.attached"];
  if (differing.length === 0) {
    act.look();
    differing = differences(act.expected, comparedOf(act.evidence, "drag"), true).filter((part) => part.startsWith("to."));
    if (hitTest(act.to).status !== "pass") differing.push("to.hit_test");
  }
  if (differing.length === 0) return true;
  [act.end, act.stoppedBefore, act.differing, act.live] = ["stopped", "drop", differing, isConnected(act.el) ? act.evidence : null];
  return false;
}

// The other frames of the page while an action goes on in one of them.
function watch(number) {
  listen();
  if (!hearsFirst()) return false;
  watched = number;
  watchedUntil = performance.now() + 10_000;
  return true;
}

function unwatch() {
  watched = null;
}

// Whether the element holds still: a box is measured again after two frames, or a moment where none are drawn. One that
// held still a moment ago and is in the same place has done so for longer than that: each act looks twice.
const STILL_MS = 500;
let still = null; // {el, box, at}: the last that did

async function steady(id) {
  const el = nodeOf(id);
  if (el === null) return false;
  const before = boxOf(el).join();
  if (still !== null && still.el.deref() === el && still.box === before && performance.now() - still.at < STILL_MS) return true;
  still = null;
  const drawn = new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
  await Promise.race([drawn, new Promise((resolve) => setTimeout(resolve, 60))]);
  if (!isConnected(el) || boxOf(el).join() !== before) return false;
  still = { el: new WeakRef(el), box: before, at: performance.now() };
  return true;
}
