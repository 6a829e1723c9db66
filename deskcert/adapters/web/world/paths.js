// Every way to the same effect: where an activation leads, and which other elements it activates or is known by.

const formOwner = {
  button: getter(HTMLButtonElement.prototype, "form"),
  input: getter(HTMLInputElement.prototype, "form"),
  select: getter(HTMLSelectElement.prototype, "form"),
  textarea: getter(HTMLTextAreaElement.prototype, "form"),
};
const formAction = getter(HTMLFormElement.prototype, "action");
const formMethod = getter(HTMLFormElement.prototype, "method");
const formElements = getter(HTMLFormElement.prototype, "elements");
const requestSubmit = method(HTMLFormElement.prototype, "requestSubmit");
const submitterMaps = {
  button: [getter(HTMLButtonElement.prototype, "formAction"), getter(HTMLButtonElement.prototype, "formMethod")],
  input: [getter(HTMLInputElement.prototype, "formAction"), getter(HTMLInputElement.prototype, "formMethod")],
};
const buttonType = getter(HTMLButtonElement.prototype, "type");
const anchorHref = getter(HTMLAnchorElement.prototype, "href");
const areaHref = getter(HTMLAreaElement.prototype, "href");

const formOf = (el) => (isHTML(el) ? (formOwner[tagOf(el)]?.(el) ?? null) : null);

function isSubmitter(el) {
  if (el instanceof HTMLButtonElement) return buttonType(el) === "submit";
  return el instanceof HTMLInputElement && (inputType(el) === "submit" || inputType(el) === "image");
}

// A link's address, or the form's action and method with the submitter's own taken first. Absent (null) for anything else.
function destinationOf(el) {
  if (el instanceof HTMLAnchorElement) return hasAttr(el, "href") ? linkTo(el, anchorHref(el)) : null;
  if (el instanceof HTMLAreaElement) return hasAttr(el, "href") ? linkTo(el, areaHref(el)) : null;
  if (el instanceof SVGAElement) return { link: new URL(el.href.baseVal, baseURI()).href };
  const form = isSubmitter(el) ? formOf(el) : null;
  return form === null ? null : formDestination(form, el);
}

// A link that says it leads to a file names it, by its own word or by the end of its address.
function linkTo(el, link) {
  if (!hasAttr(el, "download")) return { link };
  const last = link.split(/[?#]/, 1)[0].split("/").at(-1);
  return { link, download: attr(el, "download") || last || "download" };
}

function formDestination(form, submitter) {
  const [action, how] = submitter === null ? [] : submitterMaps[tagOf(submitter)];
  const ownAction = submitter !== null && hasAttr(submitter, "formaction");
  const ownMethod = submitter !== null && hasAttr(submitter, "formmethod");
  const chosen = ownMethod ? how(submitter) : formMethod(form);
  if (chosen === "dialog") return null;
  return { form_action: ownAction ? action(submitter) : formAction(form), form_method: chosen.toUpperCase() };
}

// The first submit button of the form in tree order: what Enter in a field presses (HTML, "implicit submission").
function defaultSubmitter(form) {
  const listed = [...formElements(form)].find(isSubmitter) ?? null;
  // `elements` leaves image buttons out.
  const image = [...allUnder(rootOf(form), "input[type=image]")].find((found) => formOf(found) === form) ?? null;
  if (listed === null || image === null) return listed ?? image;
  return comparePosition(listed, image) & Node.DOCUMENT_POSITION_PRECEDING ? image : listed;
}
const comparePosition = method(Node.prototype, "compareDocumentPosition");
const documentAll = (selector) => documentQueryAll(document, selector);
const fragmentQueryAll = method(DocumentFragment.prototype, "querySelectorAll");
const allUnder = (root, selector) =>
  nodeType(root) === 9 ? documentAll(selector) : nodeType(root) === 11 ? fragmentQueryAll(root, selector) : queryAll(root, selector);

const NO_ENTER = new Set(["button", "submit", "reset", "image", "file", "hidden"]);

// The form that Enter in this element would submit, if any.
function formOfEnter(el) {
  const takes = (el instanceof HTMLInputElement && !NO_ENTER.has(inputType(el))) || (el instanceof HTMLSelectElement && !listSelect(el));
  return takes ? formOf(el) : null;
}

// Without a submit button a form goes out on Enter only while at most one of its fields would block it.
const BLOCKING = new Set(["text", "search", "tel", "url", "email", "password", "date", "month", "week", "time",
  "datetime-local", "number"]);
const submitsWithoutButton = (form) =>
  [...formElements(form)].filter((c) => c instanceof HTMLInputElement && BLOCKING.has(inputType(c))).length <= 1;

const ACTIVATING_ROLES = new Set(["button", "link", "menuitem", "menuitemcheckbox", "menuitemradio", "option", "tab",
  "treeitem", "checkbox", "radio", "switch"]);

function activates(el, role) {
  return ACTIVATING_ROLES.has(role) || role === "label" || hasAttr(el, "onclick");
}

// Where the action is passed on, the retry gate has to know it from the same action on that control itself.
const PASSED_ON = new Set(["label_control", "default_submitter", "ancestor"]);

function pathTo(why, el) {
  const role = roleOf(el);
  const path = { why, role, names: namesOf(el, role), destination: destinationOf(el) };
  return PASSED_ON.has(why) ? { ...path, context: contextOf(el) } : path;
}

const NO_ACTIVATION = new Set(["set-value", "type", "clear", "focus", "scroll", "scroll-to", "upload"]);

function pathsOf(el, command, key, value) {
  const paths = labelsOf(el).map((label) => pathTo("label", label));
  if (NO_ACTIVATION.has(command)) return paths;
  if (command === "drop") return dropPaths(el);
  if (command === "drag") return [...paths, ...dragPaths(el)];
  // What is chosen is what a person would say was clicked.
  if (command === "select") return htmlTag(el) === "select" ? [...paths, ...optionsAsked(el, value).flat().map((o) => pathTo("descendant", o))] : paths;
  const pressed = command === "press";
  if (pressed) key = { enter: "Enter", space: "Space" }[key] ?? key; // as trusted input they are named in small letters
  if (!pressed || key === "Enter" || key === "Space" || key === " ") paths.push(...clickPaths(el, labelsOf(el)));
  if (pressed && key === "Enter") paths.push(...enterPaths(el));
  if (pressed) paths.push(...accessKeyPaths(key), ...arrowPaths(el, key));
  return paths;
}

// A click bubbles: whatever it passes through may react, and a label passes it on to its control, where it bubbles again.
function clickPaths(el, labels) {
  const paths = [];
  const seen = new Set([el, ...labels]);
  const add = (why, other) => {
    if (seen.has(other)) return false;
    seen.add(other);
    paths.push(pathTo(why, other));
    return true;
  };
  const passedOn = (label) => {
    const control = labelControl(label);
    if (control === null || !add("label_control", control)) return;
    for (const other of labelsOf(control)) add("label", other);
    upwards(control);
  };
  const upwards = (from) => {
    for (const at of ancestorsOf(from)) {
      const tag = tagOf(at);
      if (tag === "body" || tag === "html") break;
      if (!activates(at, roleOf(at))) continue;
      add("ancestor", at);
      passedOn(at);
    }
  };
  passedOn(el);
  upwards(el);
  return paths;
}

// The click on the default button bubbles too, and its labels name it.
function enterPaths(el) {
  const form = formOfEnter(el);
  if (form === null) return [];
  const submitter = defaultSubmitter(form);
  if (submitter !== null) {
    const labels = labelsOf(submitter);
    const around = [...labels.map((label) => pathTo("label", label)), ...clickPaths(submitter, labels)];
    return [pathTo("default_submitter", submitter), ...around.map((path) => ({ ...path, why: "default_submitter" }))];
  }
  if (!submitsWithoutButton(form)) return [];
  return [{ why: "default_submitter", role: "form", names: namesOf(form, "form"), destination: formDestination(form, null) }];
}

function accessKeyPaths(key) {
  const found = /(?:^|\+)alt\+(?:shift\+)?(\S)$/i.exec(key || "");
  if (found === null) return [];
  return [...documentAll("[accesskey]")]
    .filter((el) => attr(el, "accesskey").toLowerCase().split(/\s+/).includes(found[1].toLowerCase()))
    .map((el) => pathTo("access_key", el));
}
