// Gestures: what a pointer, the focus and a scroller do.

function pointerEvent(act, type, more) {
  const [x, y] = act.point ?? pointsOf(act.el)[0];
  const at = { ...POINTER, clientX: x, clientY: y, screenX: x + screenX, screenY: y + screenY, ...more };
  return type.startsWith("pointer")
    ? new PointerEvent(type, { ...at, pointerId: 1, pointerType: "mouse", isPrimary: true })
    : new MouseEvent(type, at);
}

function sendPointer(act, type, more) {
  return act.send(type, pointerEvent(act, type, more));
}

function hover(act) {
  const quiet = { bubbles: false, cancelable: false };
  sendPointer(act, "pointerover");
  sendPointer(act, "pointerenter", quiet);
  sendPointer(act, "mouseover");
  sendPointer(act, "mouseenter", quiet);
  sendPointer(act, "pointermove");
  sendPointer(act, "mousemove");
}

// `button` 0 is the main one, 2 the one for the context menu; `detail` counts clicks.
function pressAndRelease(act, button, detail) {
  const mouse = sendPointer(act, "pointerdown", { button, buttons: button === 2 ? 2 : 1, pressure: 0.5 });
  // A cancelled pointerdown takes the mouse events away, a cancelled mousedown the focus; the click still comes.
  if (mouse && sendPointer(act, "mousedown", { button, buttons: button === 2 ? 2 : 1, detail })) focusFor(act);
  sendPointer(act, "pointerup", { button });
  if (mouse) sendPointer(act, "mouseup", { button, detail });
}

function clickTimes(act, times) {
  hover(act);
  for (let detail = 1; detail <= times; detail++) {
    pressAndRelease(act, 0, detail);
    act.do("click", () => activate(act.el));
    if (detail === 2) sendPointer(act, "dblclick", { detail });
  }
}

const click = (act) => clickTimes(act, 1);

function rightClick(act) {
  hover(act);
  pressAndRelease(act, 2, 1);
  const at = pointerEvent(act, "pointerdown", { button: 2 });
  const menu = { bubbles: true, cancelable: true, composed: true, view: window, button: 2, clientX: at.clientX, clientY: at.clientY };
  act.send("contextmenu", new PointerEvent("contextmenu", { ...menu, pointerId: 1, pointerType: "mouse" }));
  if (isConnected(act.el)) act.send("auxclick", new PointerEvent("auxclick", { ...menu, detail: 1, pointerId: 1, pointerType: "mouse" }));
}

function focus(act) {
  act.do("focus", () => takeFocus(act.el));
}

// Scrolling is what the page's own scroller does; no event of ours is needed, the browser sends `scroll`.
const SIDES = { up: [0, -1], down: [0, 1], left: [-1, 0], right: [1, 0] };
const STEP = 100; // CSS pixels, like one notch of a wheel

function scroll(act) {
  const [dx, dy] = SIDES[act.request.direction];
  const by = { left: dx * STEP * act.request.amount, top: dy * STEP * act.request.amount, behavior: "instant" };
  const scroller = scrollerOf(act.el, dx, dy);
  if (scroller !== null) act.do("scroll", () => scrollElement(scroller, by));
}

const scrollElement = method(Element.prototype, "scrollBy");
const overflowAround = ["scrollTop", "scrollHeight", "clientHeight", "scrollLeft", "scrollWidth", "clientWidth"]
  .map((name) => getter(Element.prototype, name));

// The nearest element, itself included, that can still move in this direction.
function scrollerOf(el, dx, dy) {
  for (let at = el; at !== null; at = parentOf(at)) {
    const style = styleOf(at);
    const rootElement = at === documentRoot();
    const [top, height, shownHeight, left, width, shownWidth] = overflowAround.map((read) => read(at));
    const [position, all, shown, overflow] = dy !== 0 ? [top, height, shownHeight, style.overflowY] : [left, width, shownWidth, style.overflowX];
    if (!rootElement && overflow !== "auto" && overflow !== "scroll") continue;
    if (dx + dy > 0 ? position + shown < all - 1 : position > 0) return at;
  }
  return null;
}

function scrollTo(act) {
  act.do("scroll", () => scrollIntoView(act.el, { block: "center", inline: "center", behavior: "instant" }));
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
