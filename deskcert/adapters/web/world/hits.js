// Where the element is, and what a pointer would hit there.

// A transform can make a box larger than any number that a record can hold.
const MOST = Number.MAX_SAFE_INTEGER;
const thousandths = (value) => {
  const whole = Math.round(value * 1000);
  return whole > MOST ? MOST : whole < -MOST ? -MOST : whole || 0;
};

function boxOf(el) {
  const box = rectOf(el);
  return [thousandths(box.x), thousandths(box.y), thousandths(box.width), thousandths(box.height)];
}

// The innermost element at a point, through open shadow roots. `outer` is the document of a frame around this one.
function deepestAt(x, y, outer = document) {
  let found = Document.prototype.elementFromPoint.call(outer, x, y);
  for (let root = found && shadowOf(found); root; root = found && shadowOf(found)) {
    const inner = ShadowRoot.prototype.elementFromPoint.call(root, x, y);
    if (inner === null || inner === found) break;
    found = inner;
  }
  return found;
}

// The boxes in which to look: an inline link may be broken over several lines.
function piecesOf(el) {
  const all = [...Element.prototype.getClientRects.call(el)].filter((r) => r.width > 0 && r.height > 0);
  if (all.length) return all;
  const inner = [...childrenOf(el)].filter(isElement).map((c) => rectOf(c)).filter((r) => r.width > 0 && r.height > 0);
  return inner.length ? inner : [rectOf(el)];
}

// Five points: the middle first, then half way to each corner.
function pointsOf(el) {
  const box = piecesOf(el)[0];
  const at = (fx, fy) => [box.x + box.width * fx, box.y + box.height * fy];
  return [at(0.5, 0.5), at(0.25, 0.25), at(0.75, 0.25), at(0.25, 0.75), at(0.75, 0.75)];
}

// A picture of the page with a frame drawn into it: on a canvas of our own, so that the page neither changes nor knows.
async function outlined(data, [box, masks]) {
  const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
  const picture = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
  const canvas = new OffscreenCanvas(picture.width, picture.height);
  const pen = canvas.getContext("2d");
  pen.drawImage(picture, 0, 0);
  const scale = picture.width / innerWidth;
  pen.fillStyle = "#8a8f98";
  for (const [x, y, width, height] of masks) pen.fillRect(x * scale, y * scale, width * scale, height * scale);
  if (box !== null) {
    const [x, y, width, height] = box;
    pen.lineWidth = 3 * scale;
    pen.strokeStyle = "#ff00aa";
    pen.strokeRect((x - 2) * scale, (y - 2) * scale, (width + 4) * scale, (height + 4) * scale);
  }
  const made = new Uint8Array(await (await canvas.convertToBlob({ type: "image/png" })).arrayBuffer());
  let text = "";
  for (let i = 0; i < made.length; i += 32_768) text += String.fromCharCode(...made.subarray(i, i + 32_768));
  return btoa(text);
}

const inView = ([x, y]) => x >= 0 && y >= 0 && x < innerWidth && y < innerHeight;

// A scroller cuts the element off at this point: out of view, though inside the window.
function clippedAt(el, x, y) {
  for (const at of ancestorsOf(el)) {
    const tag = tagOf(at);
    if (tag === "body" || tag === "html") return false;
    if (styleOf(at).overflow === "visible") continue;
    const box = rectOf(at);
    if (x < box.left || x > box.right || y < box.top || y > box.bottom) return true;
  }
  return false;
}

// Its descendants, its label, its control and the ancestors that it activates count as the element itself.
function countsAs(hit, el) {
  if (flatContains(el, hit)) return true;
  if (flatContains(hit, el)) return activates(hit, roleOf(hit)) || shadowOf(hit) !== null;
  for (let at = hit; at !== null; at = parentOf(at)) if (labelControl(at) === el) return true;
  const control = labelControl(el);
  return control !== null && flatContains(control, hit);
}

// `pass` if a pointer reaches it at one of the points; `deferred` if none is in view; `unknown` if the page does not say
// (then no occluder is invented).
function hitTest(el) {
  const points = pointsOf(el).filter(inView);
  if (points.length === 0) return { status: "deferred", at: null };
  let occluder = null;
  let clipped = 0;
  for (const [x, y] of points) {
    const hit = deepestAt(x, y);
    if (hit === null) continue;
    if (countsAs(hit, el)) return frameHit({ status: "pass", at: [x, y] });
    if (clippedAt(el, x, y)) clipped++;
    else occluder ??= hit;
  }
  if (occluder === null) return { status: clipped > 0 ? "deferred" : "unknown", at: null };
  return covered(occluder);
}

function covered(hit) {
  let role = "generic";
  let name = null;
  try {
    const named = namedAround(hit);
    role = roleOf(named);
    name = orNull(nameOf(named, role).slice(0, MOST_LABEL));
  } catch {
    // an element of a document around this one, of which not everything can be asked from here
  }
  return { status: "fail", occluder_role: role, occluder_name: name, at: null };
}

// The nearest element around a hit that a person could name.
function namedAround(hit) {
  for (let at = hit; at !== null; at = parentOf(at)) {
    const role = roleOf(at);
    if (tagOf(at) === "body" || tagOf(at) === "html") break;
    if (role !== "generic" && role !== "none" && nameOf(at, role)) return at;
  }
  return hit;
}

// Inside a frame the way down to it must be free as well. `out` counts the frames that could be asked from here, and
// `beyond` is the point in the outermost of them: a document of another origin must be asked in its own place.
function frameHit(found) {
  let beyond = found.at;
  let out = 0;
  for (let view = window; view !== view.parent; view = view.parent) {
    let frame = null;
    try {
      frame = view.frameElement;
    } catch {
      frame = null;
    }
    if (frame === null) break;
    const way = throughFrame(frame, beyond, view.parent);
    if (way.status !== "pass") return way;
    beyond = way.at;
    out++;
  }
  return { ...found, beyond, out };
}

// A point of a frame's document, seen from the document around it: where it is there, and whether a pointer there gets
// through to the frame. A frame that is scaled shows its document scaled.
function throughFrame(frame, inner, view) {
  const [x, y] = outOf(frame, inner);
  if (x < 0 || y < 0 || x >= view.innerWidth || y >= view.innerHeight) return { status: "deferred", at: null };
  const hit = deepestAt(x, y, view.document);
  if (hit === frame) return { status: "pass", at: [x, y] };
  if (hit === null) return { status: "unknown", at: null };
  return clippedAt(frame, x, y) ? { status: "deferred", at: null } : covered(hit);
}

function outOf(frame, [innerX, innerY]) {
  const box = rectOf(frame);
  const [sx, sy] = frame.offsetWidth > 0 && frame.offsetHeight > 0 ? [box.width / frame.offsetWidth, box.height / frame.offsetHeight] : [1, 1];
  return [box.x + (frame.clientLeft + innerX) * sx, box.y + (frame.clientTop + innerY) * sy];
}

// Where a box of a frame's document is in the document around it, seen or not.
function placed(id, [x, y, width, height]) {
  const frame = nodeOf(id);
  if (frame === null) throw new Error("the frame is gone");
  const [left, top] = outOf(frame, [x, y]);
  const [right, bottom] = outOf(frame, [x + width, y + height]);
  return [left, top, right - left, bottom - top];
}

// What the adapter asks on the way out, in the document around a frame of another origin.
function through(id, x, y, mayScroll) {
  const frame = nodeOf(id);
  if (frame === null) return { status: "unknown", at: null };
  let way = throughFrame(frame, [x, y], window);
  const scrolled = way.status === "deferred" && mayScroll;
  if (scrolled) {
    scrollIntoView(frame, { block: "center", inline: "center", behavior: "instant" });
    way = throughFrame(frame, [x, y], window);
  }
  return { ...(way.status === "pass" ? frameHit(way) : way), scrolled };
}

// What the adapter asks first, in the target's own document, where the way out leads through another origin.
function reveal(id) {
  const el = nodeOf(id);
  if (el === null) return { status: "unknown", at: null };
  let hit = hitTest(el);
  const scrolled = hit.status === "deferred";
  if (scrolled) {
    scrollIntoView(el, { block: "center", inline: "center", behavior: "instant" });
    hit = hitTest(el);
  }
  return { ...hit, scrolled };
}
