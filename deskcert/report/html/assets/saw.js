// What the agent saw: the places of the elements as a drawing, the target outlined, and the tree as text.
const MOST_NODES = 3000;
const SVG = "http://www.w3.org/2000/svg";

function svg(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

const nameOf = (node) => (typeof node.name === "string" ? node.name : "");

// Places inside a frame are the frame's own: they are moved to where the frame is.
function inWindow(nodes) {
  const frames = [];
  return nodes.map((node) => {
    const depth = node.d || 0;
    while (frames.length && frames.at(-1).depth >= depth) frames.pop();
    const { x, y } = frames.at(-1) || { x: 0, y: 0 };
    if (!Array.isArray(node.box)) return node;
    const box = [node.box[0] + x, node.box[1] + y, node.box[2], node.box[3]];
    if (node.role === "iframe" || node.role === "frame") frames.push({ depth, x: box[0], y: box[1] });
    return { ...node, box };
  });
}

function drawing(nodes, ref) {
  const placed = inWindow(nodes).filter((n) => Array.isArray(n.box) && n.box[2] > 0 && n.box[3] > 0 && n.box[0] > -500000 && n.box[1] > -500000).slice(0, 800);
  if (placed.length === 0) return null;
  const right = Math.max(...placed.map((n) => n.box[0] + n.box[2])) / 1000;
  const bottom = Math.min(Math.max(...placed.map((n) => n.box[1] + n.box[3])) / 1000, 3 * right);
  const target = placed.find((n) => ref !== null && n.ref === ref);
  const told = "Places of " + placed.length + " elements" + (target ? ", the target outlined: " + plain(nameOf(target) || target.role, 80) : "");
  const made = svg("svg", { class: "saw", viewBox: "-8 -8 " + (right + 16) + " " + (bottom + 16), role: "img", "aria-label": told });
  for (const node of placed) {
    const [x, y, w, h] = node.box.map((v) => v / 1000);
    if (y > bottom) continue;
    const chosen = node === target ? "target" : "";
    made.append(svg("rect", { x, y, width: w, height: h, rx: 4, class: chosen }));
    const size = Math.max(9, Math.min(14, h * 0.5));
    const room = Math.floor(w / (size * 0.56));
    const text = plain(nameOf(node), 120);
    if (room > 2 && text) made.append(svg("text", { x: x + 5, y: y + Math.min(h, 30) / 2 + size * 0.35, "font-size": size, class: chosen }, text.length > room ? text.slice(0, room - 1) + "…" : text));
  }
  return made;
}

function treeText(nodes, ref) {
  const box = el("div", { class: "tree", tabindex: "0", role: "region", "aria-label": "The tree that the agent saw" });
  for (const node of nodes.slice(0, MOST_NODES)) {
    const line = "  ".repeat(Math.min(node.d || 0, 24)) + plain(node.role || "", 60) + (nameOf(node) ? " “" + plain(nameOf(node), 160) + "”" : "")
      + (node.states && node.states.length ? " [" + plain(node.states.join(", "), 120) + "]" : "") + (node.ref ? "  e" + node.ref : "");
    box.append(ref !== null && node.ref === ref ? el("mark", {}, line) : line, "\n");
  }
  if (nodes.length > MOST_NODES) box.append("… and " + (nodes.length - MOST_NODES) + " more");
  return box;
}

// `snapshot` is the observation's number; `ref` the number of the target in it, or null.
async function saw(run, snapshot, ref) {
  const out = el("section", {}, el("h4", {}, "What the agent saw"));
  const found = await recordOf(run, snapshot);
  if (found === null) return out.append("There is no record " + snapshot + "."), out;
  const link = el("a", { href: "#run=" + DATA.runs.indexOf(run) + "&seq=" + snapshot }, "Record " + snapshot);
  const complete = found.complete === true ? "" : " The reading was not complete.";
  out.append(el("p", {}, link, ": ", foreign((found.window || {}).title || ""), " · " + (found.nodes ?? "?") + " nodes." + complete));
  const pieces = await piece(run.trees);
  if (pieces[snapshot] === undefined) {
    out.append(el("p", { class: "quiet" }, "The tree was left out of this file (deskcert report --trees all brings it), or is no longer there. deskcert ledger show RUN " + snapshot + " --tree shows it."));
    return out;
  }
  const tree = await piece(pieces[snapshot]);
  if (tree.missing) return out.append(el("div", { class: "note warn" }, "The tree can no longer be shown: ", foreign(tree.missing))), out;
  const nodes = Array.isArray(tree.nodes) ? tree.nodes : [];
  const drawn = drawing(nodes, ref);
  if (drawn) out.append(drawn);
  out.append(treeText(nodes, ref));
  requestAnimationFrame(() => {
    const mark = out.querySelector("mark"), box = out.querySelector(".tree");
    if (mark && box) box.scrollTop = mark.offsetTop - box.offsetTop - 80;
  });
  return out;
}

// What the window showed, as it was recorded: fields masked, the target outlined.
async function shown(run, step) {
  const out = el("section", {});
  const known = step[STEP.pictures].length ? await piece(run.pictures) : {};
  for (const seq of step[STEP.pictures]) {
    const found = known[seq] || {};
    const after = found.of !== step[STEP.seq];
    out.append(el("h4", {}, after ? "What the window showed afterwards" : "What the window showed"));
    const said = "record " + seq + ", fields masked" + (after ? "" : ", the target outlined");
    if (found.piece === undefined) out.append(el("div", { class: "note warn" }, "No picture: ", foreign(found.missing || "unknown")));
    else {
      const made = el("img", { class: "shown", src: "data:image/png;base64," + (await piece(found.piece)), alt: "Picture of the window, " + said });
      out.append(el("figure", {}, made, el("figcaption", { class: "quiet" }, said)));
    }
  }
  return out;
}
