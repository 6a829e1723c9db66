// Where the element is, and what a pointer would hit there.

const elementFromPoint = (root, x, y) =>
  root instanceof ShadowRoot ? ShadowRoot.prototype.elementFromPoint.call(root, x, y) : Document.prototype.elementFromPoint.call(document, x, y);

// A transform can make a box larger than any number that a record can hold.
const MOST = Number.MAX_SAFE_INTEGER;
const thousandths = (value) => Math.min(MOST, Math.max(-MOST, Math.round(value * 1000))) || 0;

function boxOf(el) {
  const box = rectOf(el);
  return [thousandths(box.x), thousandths(box.y), thousandths(box.width), thousandths(box.height)];
}

// The innermost element at a point, through open shadow roots.
function deepestAt(x, y) {
  let found = elementFromPoint(document, x, y);
  for (let root = found && shadowOf(found); root; root = found && shadowOf(found)) {
    const inner = elementFromPoint(root, x, y);
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
  const named = namedAround(occluder);
  const role = roleOf(named);
  return { status: "fail", occluder_role: role, occluder_name: orNull(nameOf(named, role).slice(0, MOST_LABEL)), at: null };
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

// Inside a frame the way down to it must be free as well. A parent of another origin cannot be asked.
function frameHit(found) {
  let [x, y] = found.at;
  for (let view = window; view !== view.parent; view = view.parent) {
    let frame = null;
    try {
      frame = view.frameElement;
    } catch {
      frame = null;
    }
    if (frame === null) return { status: "unknown", at: null };
    const box = rectOf(frame);
    x += box.x + frame.clientLeft;
    y += box.y + frame.clientTop;
    const outer = view.parent;
    if (x < 0 || y < 0 || x >= outer.innerWidth || y >= outer.innerHeight) return { status: "deferred", at: null };
    if (Document.prototype.elementFromPoint.call(outer.document, x, y) !== frame)
      return { status: "fail", occluder_role: "generic", occluder_name: null, at: null };
  }
  return found;
}
