// Gestures: one element dragged onto another. In HTML's own way (dragstart … drop) where the element can be dragged so, with
// pointer and mouse events otherwise.

// Until the button is down the source is compared as for a click; from then on both are what they were, and where it ends
// as a whole; after the release nothing, for then the page moves things.
class Drag extends Act {
  constructor(el, request) {
    super(el, request);
    this.phase = "before";
  }

  check(next) {
    if (this.phase === "before") super.check(next);
    if (this.phase !== "down") return;
    if (!isConnected(this.el)) this.stop(next, ["attached"]);
    if (!isConnected(this.to)) this.stop(next, ["to.attached"]);
    this.look();
    const differing = differences(this.expected, comparedOf(this.evidence, "drag"), true)
      .filter((part) => part.startsWith("to.") || SOURCE_STAYS.has(part) || part.startsWith("names."));
    if (differing.length) this.stop(next, differing);
  }

  // The way to where it ends must be free, once that has come into view.
  reach() {
    this.look();
    if (this.evidence.other.hit_test.status === "deferred") {
      scrollIntoView(this.to, { block: "center", inline: "center", behavior: "instant" });
      this.scrolled = true;
      this.look();
    }
    const now = this.evidence.other.hit_test.status;
    if (now !== "pass" && !(now === "unknown" && this.expected.other.hit === "unknown")) this.stop("drop", ["to.hit_test"]);
    return hitTest(this.to).at ?? pointsOf(this.to)[0];
  }
}
const SOURCE_STAYS = new Set(["node", "role"]);

function drag(act) {
  hover(act);
  const taken = draggableAround(act.el);
  const down = sendPointer(act, "pointerdown", { buttons: 1, pressure: 0.5 });
  const pressed = down && sendPointer(act, "mousedown", { buttons: 1, detail: 1 });
  act.phase = "down";
  if (taken !== null && pressed && takeUp(act, taken)) return;
  dragByPointer(act, down);
}

function draggableAround(el) {
  for (let at = el; at !== null; at = parentOf(at)) if (isDraggable(at)) return at;
  return null;
}
const isDraggable = (el) => el instanceof HTMLElement && draggableOf(el);
const draggableOf = getter(HTMLElement.prototype, "draggable");

// False where the page does not let the drag begin: then it does its own, by pointer.
function takeUp(act, taken) {
  // A script's own DataTransfer carries data, but its effects stay "none" whatever is set: consent is all that is asked.
  const data = new DataTransfer();
  const link = destinationOf(taken)?.link;
  if (link) for (const type of ["text/uri-list", "text/plain"]) data.setData(type, link);
  const dragEvent = (type, more) => {
    const { clientX, clientY } = pointerEvent(act, "pointerdown");
    return new DragEvent(type, { ...POINTER, clientX, clientY, buttons: 1, dataTransfer: data, ...more });
  };
  if (!act.send("dragstart", dragEvent("dragstart"), taken)) return false;
  act.send("pointercancel", pointerEvent(act, "pointercancel", { cancelable: false }), act.el);
  act.send("drag", dragEvent("drag"), taken);
  const [clientX, clientY] = act.reach();
  const at = { clientX, clientY };
  armed.main = "drop";
  act.send("dragenter", dragEvent("dragenter", at), act.to);
  const refused = act.send("dragover", dragEvent("dragover", at), act.to);
  if (refused) act.send("dragleave", dragEvent("dragleave", { ...at, cancelable: false }), act.to);
  else act.send("drop", dragEvent("drop", at), act.to);
  act.phase = "over";
  if (isConnected(taken)) act.send("dragend", dragEvent("dragend", { cancelable: false }), taken);
  return true;
}

function dragByPointer(act, down) {
  const move = (point, target) => {
    const [clientX, clientY] = point;
    for (const type of down ? ["pointermove", "mousemove"] : ["pointermove"])
      act.send(type, pointerEvent(act, type, { clientX, clientY, buttons: 1, button: type === "pointermove" ? -1 : 0 }), target);
  };
  const [x, y] = act.point ?? pointsOf(act.el)[0];
  move([x + DRAGGED_BY, y + DRAGGED_BY], act.el);
  const end = act.reach();
  armed.main = "mouseup";
  move([(x + end[0]) / 2, (y + end[1]) / 2], act.to);
  move(end, act.to);
  const at = { clientX: end[0], clientY: end[1] };
  act.send("pointerup", pointerEvent(act, "pointerup", at), act.to);
  act.phase = "over";
  if (down) act.send("mouseup", pointerEvent(act, "mouseup", { ...at, detail: 1 }), act.to);
}
const DRAGGED_BY = 8; // CSS pixels: more than what applications take for a trembling hand

// Who hears of a drop: what stands around the place and has a meaning or a name.
function dropPaths(el) {
  const paths = [];
  for (const at of ancestorsOf(el)) {
    const tag = tagOf(at);
    if (tag === "body" || tag === "html") break;
    const role = roleOf(at);
    if (!TRANSPARENT.has(role) || hasAttr(at, "aria-label") || hasAttr(at, "title")) paths.push(pathTo("drop_around", at));
  }
  return paths;
}

// What is dragged is the nearest element around that can be.
function dragPaths(el) {
  const taken = draggableAround(el);
  return taken === null || taken === el ? [] : [pathTo("ancestor", taken)];
}
