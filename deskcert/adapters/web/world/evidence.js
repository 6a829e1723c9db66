// E: everything about one element that a decision may rest on, collected in one task; and the comparison of two such looks.

// Commands that send events of a pointer: the target must be what a pointer would hit.
const POINTER_LIKE = new Set(["click", "double-click", "triple-click", "right-click", "hover", "check", "uncheck", "toggle",
  "expand", "collapse", "drag"]);

const evidenceOf = (el, command, key, value, to) => during(() => collected(el, command, key, value, to));

function collected(el, command, key, value, to) {
  const role = roleOf(el);
  const hit = hitTest(el);
  const evidence = {
    node: idOf(el),
    role,
    names: namesOf(el, role, true),
    context: contextOf(el),
    url: documentURL(),
    destination: destinationOf(el),
    paths: pathsOf(el, command, key, value),
    states: statesOf(el, role),
    actions: actionsOf(el, role),
    box: boxOf(el),
    hit_test: { status: hit.status, occluder_role: hit.occluder_role, occluder_name: hit.occluder_name },
    value: valueOf(el, role),
  };
  if (command === "select" && htmlTag(el) === "select") evidence.options = optionsAsked(el, value).map((found) => found.length);
  if (to) evidence.other = during(() => collected(to, "drop").evidence);
  return { evidence, point: hit.at, beyond: hit.beyond, out: hit.out };
}

// What the dispatch compares. No value, no geometry, and not the focus, which the action itself moves.
function comparedOf(evidence, command) {
  const { focused: _focused, ...states } = evidence.states;
  const { node, role, names, context, url, destination, paths, actions } = evidence;
  const hit = POINTER_LIKE.has(command) ? evidence.hit_test.status : null;
  const other = evidence.other && { ...comparedOf(evidence.other, "drop"), hit: evidence.other.hit_test.status };
  return { node, role, names, context, url, destination, paths, actions, states, hit, options: evidence.options, other };
}

// States with which a control answers the very gesture that is going on: its effect, not another target.
const OWN_EFFECT = new Set(["expanded", "pressed", "selected", "checked", "indeterminate"]);

// Names of the parts that differ. `hit` is judged by the caller, who may still scroll.
function differences(before, now, midway) {
  const found = [];
  for (const part of ["node", "role", "context", "url", "destination", "paths", "actions", "options"])
    if (JSON.stringify(before[part]) !== JSON.stringify(now[part])) found.push(part);
  for (const part of ["names", "states"])
    for (const key of new Set([...Object.keys(before[part]), ...Object.keys(now[part])])) {
      if (midway && part === "states" && OWN_EFFECT.has(key)) continue;
      if (JSON.stringify(before[part][key]) !== JSON.stringify(now[part][key])) found.push(part + "." + key);
    }
  if (now.other) found.push(...differences(before.other, now.other, midway).map((part) => "to." + part));
  return found;
}

function probe(id, command, key, value, toId) {
  const el = nodeOf(id);
  const to = toId ? nodeOf(toId) : undefined;
  if (el === null || to === null) return { gone: "removed" };
  const { evidence, beyond, out } = evidenceOf(el, command, key, value, to);
  return { evidence, beyond, out, compared: JSON.stringify(comparedOf(evidence, command)) };
}
