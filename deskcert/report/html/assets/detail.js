// One step in full: what was asked, the guard's checks as guard.md numbers them, what was sent and what came back.
const refNumber = (target) => {
  const found = /:e(\d+)$/.exec((target && target.ref) || "");
  return found ? Number(found[1]) : null;
};
const us = (v) => (v >= 1000 ? (v / 1000).toFixed(1) + " ms" : v + " µs");

function row(no, name, tone, text, small) {
  return el("li", { class: tone }, el("span", { class: "no" }, "(" + no + ")"), el("span", { class: "name" }, name), el("span", {}, text, small ? el("small", {}, small) : null));
}

function checksOf(first, result) {
  const list = el("ol", { class: "checks" });
  const denied = first.kind === "action.denied", refused = first.kind === "action.refused", intent = first.kind === "action.intent";
  const gateDenied = denied && first.rule === "retry-gate", phase = refused ? first.phase : "";
  const stop = { parse: 1, resolve: 2, actionability: 4, lease: 5, budget: 1, ledger: 6, gate: 3 }[phase] || (denied ? 3 : 9);
  const why = foreign((first.code || "") + (first.detail_kind ? " · " + words(first.detail_kind) : ""));
  list.append(stop === 1 ? row(1, "Parse", "bad", why, phase === "budget" ? "the budget is used up" : "") : row(1, "Parse", "good", "a command with typed arguments"));
  if (stop === 2) list.append(row(2, "Resolve", "bad", why, first.details ? foreign(JSON.stringify(first.details), 300) : ""));
  else if (stop > 2) list.append(row(2, "Resolve", "good", first.target && first.target.url ? "a page command: no element" : "the same element that was seen", (first.target || {}).node ? foreign("node " + first.target.node + ", document " + String(first.target.document).slice(0, 8)) : ""));
  if (denied) list.append(policyDenied(first, gateDenied));
  else if (stop > 2) list.append(policyAllowed(first));
  if (stop >= 4) list.append(actionability(first, refused && stop === 4));
  if (stop === 5) list.append(row(5, "Lease", "bad", why));
  const phases = (result || first).phases_us || {};
  if (intent) {
    list.append(row(5, "Lease", "good", "held for the dispatch", phases.lease !== undefined ? "taken after " + us(phases.lease) : ""));
    list.append(row(6, "Intent", "good", "recorded durably before anything was sent, as record " + first.seq, phases.commit !== undefined ? "committed in " + us(phases.commit) : ""));
    list.append(...resultRows(result, phases));
  }
  for (let no = stop + 1; no <= 9 && !intent; no++) list.append(row(no, ["", "", "", "Policy", "Actionability", "Lease", "Intent", "Dispatch", "Verify", "Result"][no], "none", "not reached"));
  return list;
}

function policyDenied(first, gate) {
  const source = first.source || {};
  if (!gate) return row(3, "Policy", "bad", el("span", {}, "denied by ", el("code", {}, plain(first.rule, 100)), ": ", foreign(first.reason || words(first.detail_kind))), foreign("matched the " + words(source.field) + " of the " + words(source.via) + ", compared by " + source.form));
  const g = first.gate || {}, before = g.previous || {};
  return row(3, "Retry gate", "bad", foreign(first.reason || "a repeat that is not safe"), "earlier attempt: record " + before.seq + ", " + words(before.delivery || "") + (g.newer_snapshot ? "" : "; no newer snapshot was taken") + (g.unanswered ? "; a request of it is unanswered" : ""));
}

function policyAllowed(first) {
  const policy = first.policy || {}, gate = first.gate || {};
  const told = policy.rules_evaluated !== undefined ? policy.rules_evaluated + " rules asked, none denies" : "no rule denies";
  const noted = policy.record_only ? "record only: " + plain(policy.record_only.join(", ")) + ". " : "";
  const repeat = gate.previous ? "A repeat of record " + gate.previous.seq + (gate.repeat_of ? ", named by the agent" : "") + "." : "No earlier attempt like it.";
  return row(3, "Policy", policy.record_only ? "warn" : "good", told, noted + repeat);
}

function actionability(first, failed) {
  const told = first.actionability || {}, checks = Array.isArray(told.checks) ? told.checks : [], looks = Array.isArray(told.looks) ? told.looks : [];
  if (checks.length === 0) return row(4, "Actionability", failed ? "bad" : "none", failed ? foreign(words(first.detail_kind || first.code || "")) : "nothing to wait for");
  const items = el("span", {});
  checks.forEach((c, n) => items.append(n ? ", " : "", el(c.status === "pass" || c.status === "deferred" ? "span" : "b", {}, words(c.check) + (c.status === "pass" ? "" : ": " + c.status))));
  const bad = checks.filter((c) => c.reason || c.occluder).map((c) => words(c.check) + ": " + (c.reason || "") + (c.occluder ? " (" + (c.occluder.role || "") + " " + (c.occluder.name || "") + ")" : ""));
  const wait = looks.length > 1 ? looks.length + " looks, the last after " + Math.round(looks[looks.length - 1].t_us / 1000) + " ms. " : "";
  return row(4, "Actionability", failed ? "bad" : "good", items, foreign(wait + bad.join("; ")));
}

function resultRows(result, phases) {
  if (!result) return [row(7, "Dispatch", "bad", "no result was recorded"), row(8, "Verify", "none", "not reached"), row(9, "Result", "bad", "unknown: never to be retried automatically")];
  const d = result.dispatch || {}, v = result.verification || {}, rows = [];
  const sent = (d.events_sent || []).join(", ");
  const trouble = [d.stopped_before ? "stopped before " + d.stopped_before : "", d.differences ? "differs: " + JSON.stringify(d.differences) : "", d.error || "", d.dialog ? "dialog: " + d.dialog.text : ""].filter(Boolean).join(" · ");
  rows.push(row(7, "Dispatch", d.skipped ? "none" : d.end === "completed" ? "good" : "bad", d.skipped ? "nothing was sent: the asked state held already" : words(d.end || "") + (d.reached ? ", the target was reached" : ", the target was not reached") + (phases.dispatch ? " · " + us(phases.dispatch) : ""), foreign((sent ? "events: " + sent + (trouble ? " · " : "") : "") + trouble)));
  const satisfied = v.satisfied === true ? "good" : v.satisfied === false ? "bad" : "none";
  rows.push(row(8, "Verify", satisfied, v.claim ? foreign(v.claim + ": " + (v.satisfied === true ? "yes" : v.satisfied === false ? "no" : "not known")) : "this action claims no state", foreign([v.scope && v.scope !== "none" ? words(v.scope) : "", v.observed !== undefined && v.observed !== null ? "observed " + JSON.stringify(v.observed) : "", v.reason || ""].filter(Boolean).join(" · "))));
  rows.push(row(9, "Result", result.ok ? "good" : "bad", words(result.delivery) + (result.code ? " · " + result.code : "") + (result.detail_kind ? " · " + words(result.detail_kind) : ""), "a repeat is " + words(result.retry) + ", recorded as record " + result.seq));
  return rows;
}

function pairs(object, skip = []) {
  const list = el("dl", { class: "pairs" });
  for (const [key, value] of Object.entries(object || {})) {
    if (skip.includes(key) || value === undefined) continue;
    list.append(el("dt", {}, plain(words(key), 60)), el("dd", {}, foreign(typeof value === "string" ? value : JSON.stringify(value), 500)));
  }
  return list;
}

async function network(run, steps, step) {
  const mine = steps.filter((s) => s[STEP.group] === "network" && s[STEP.outcome].endsWith("action " + step[STEP.seq])).slice(0, 50);
  const out = el("section", {}, el("h4", {}, "On the network"));
  if (mine.length === 0) return out.append(el("p", { class: "quiet" }, (run.environment || {}).proxy === "off" ? "No proxy stood before the application in this run: what it sent is not recorded." : "No recorded request names this action.")), out;
  for (const s of mine) out.append(el("p", {}, el("a", { href: "#run=" + DATA.runs.indexOf(run) + "&seq=" + s[STEP.seq] }, "record " + s[STEP.seq]), " ", foreign(s[STEP.what] + " " + s[STEP.target] + " " + s[STEP.outcome])));
  return out;
}

function raw(record) {
  const json = JSON.stringify(record, (k, v) => (k === "plan" && Array.isArray(v) ? v.length + " planned runs" : v), 1);
  const pre = el("pre", { class: "raw", tabindex: "0" });
  pre.append(foreign(json, 60000, true));
  return el("details", {}, el("summary", {}, "Record " + record.seq + " as it stands"), pre);
}

async function detailOf(run, steps, step) {
  const first = await recordOf(run, step[STEP.seq]);
  if (first === null) return el("p", {}, "There is no such record.");
  const result = step[STEP.end] !== step[STEP.seq] ? await recordOf(run, step[STEP.end]) : null;
  const out = el("div", {}, el("h3", {}, foreign(step[STEP.what] + " " + step[STEP.target], 300)));
  const span = result ? "Records " + step[STEP.seq] + " and " + step[STEP.end] : "Record " + step[STEP.seq];
  out.append(el("p", { class: "quiet" }, span + " · " + first.kind + " · " + String(first.t).replace("T", " ").slice(0, 23) + " UTC"));
  for (const f of DATA.findings.filter((f) => DATA.runs[f.run] === run && (f.seqs.includes(step[STEP.seq]) || f.seqs.includes(step[STEP.end]))))
    out.append(el("div", { class: "note bad" }, el("p", {}, el("b", {}, f.rule + " " + f.name)), el("p", {}, foreign(f.text))));
  if (first.kind.startsWith("action.") && first.kind !== "action.result") {
    out.append(el("h4", {}, "What it asked"), pairs({ command: first.command, ...(first.args || {}) }, ["_sd"]));
    if ((first.args || {})._sd) out.append(el("p", { class: "quiet" }, "The typed value is secret: the record holds a salted commitment to it. deskcert ledger show RUN " + first.seq + " opens it where the opening is still there."));
    out.append(el("h4", {}, "What the guard decided, and why"), checksOf(first, result));
    out.append(await shown(run, step));
    if (first.kind === "action.intent") out.append(await network(run, steps, step));
    if (first.snapshot_seq !== undefined) out.append(await saw(run, first.snapshot_seq, refNumber(first.target)));
  } else if (first.kind === "observation") {
    out.append(pairs(first.window));
    out.append(await saw(run, first.seq, null));
  } else out.append(pairs(first, ["kind", "seq", "t", "w", "plan", "key_intro", "policy"]));
  out.append(el("h4", {}, "Evidence"), raw(first));
  if (result) out.append(raw(result));
  out.append(el("p", { class: "quiet" }, "Its proof: ", el("code", {}, "deskcert ledger prove " + plain(run.ledger.folder, 300) + " " + step[STEP.seq])));
  return out;
}
