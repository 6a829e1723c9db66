// Roles: the explicit one if it is valid, else the one of the element (ARIA 1.2, HTML-AAM 1.0).
// `label` and `legend` are our own words for two elements that have no ARIA role and that people do click.

const ARIA_ROLES = new Set(
  ("alert alertdialog application article banner blockquote button caption cell checkbox code columnheader combobox " +
    "complementary contentinfo definition deletion dialog directory document emphasis feed figure form generic grid " +
    "gridcell group heading img image insertion link list listbox listitem log main marquee math menu menubar menuitem " +
    "menuitemcheckbox menuitemradio meter navigation none note option paragraph presentation progressbar radio " +
    "radiogroup region row rowgroup rowheader scrollbar search searchbox separator slider spinbutton status strong " +
    "subscript superscript switch tab table tablist tabpanel term textbox time timer toolbar tooltip tree treegrid " +
    "treeitem").split(" "),
);

const INTERACTIVE_ROLES = new Set(
  ("button checkbox combobox link listbox menuitem menuitemcheckbox menuitemradio option radio searchbox slider " +
    "spinbutton switch tab textbox treeitem scrollbar").split(" "),
);

const NAMED_BY_CONTENT = new Set(
  ("button caption cell checkbox columnheader gridcell heading label legend link menuitem menuitemcheckbox " +
    "menuitemradio option radio row rowheader switch tab tooltip treeitem").split(" "),
);

const GLOBAL_ARIA = ["aria-label", "aria-labelledby", "aria-describedby", "aria-live", "aria-owns", "aria-controls",
  "aria-description", "aria-atomic", "aria-busy", "aria-current", "aria-details", "aria-flowto", "aria-keyshortcuts",
  "aria-relevant", "aria-roledescription"];

const TAG_ROLES = {
  article: "article", aside: "complementary", address: "group", blockquote: "blockquote", button: "button",
  caption: "caption", code: "code", datalist: "listbox", dd: "definition", del: "deletion", details: "group",
  dfn: "term", dialog: "dialog", dt: "term", em: "emphasis", fieldset: "group", figure: "figure", h1: "heading",
  h2: "heading", h3: "heading", h4: "heading", h5: "heading", h6: "heading", hr: "separator", html: "document",
  iframe: "iframe", frame: "iframe", ins: "insertion", label: "label", legend: "legend", li: "listitem", main: "main",
  math: "math", menu: "list", meter: "meter", nav: "navigation", ol: "list", optgroup: "group", option: "option",
  output: "status", p: "paragraph", progress: "progressbar", search: "search", strong: "strong", sub: "subscript",
  sup: "superscript", table: "table", tbody: "rowgroup", textarea: "textbox", tfoot: "rowgroup", thead: "rowgroup",
  time: "time", tr: "row", ul: "list",
};

const INPUT_ROLES = {
  button: "button", checkbox: "checkbox", color: "textbox", date: "textbox", "datetime-local": "textbox",
  email: "textbox", file: "button", image: "button", month: "textbox", number: "spinbutton", password: "textbox",
  radio: "radio", range: "slider", reset: "button", search: "searchbox", submit: "button", tel: "textbox",
  text: "textbox", time: "textbox", url: "textbox", week: "textbox",
};

const TEXT_LIKE = new Set(["email", "search", "tel", "text", "url"]);
const readType = getter(HTMLInputElement.prototype, "type");
const inputType = (el) => (el === here ? (hereType ??= readType(el)) : readType(el));

function roleOf(el) {
  const explicit = attr(el, "role");
  if (explicit) {
    for (const token of explicit.toLowerCase().split(/\s+/)) {
      if (!ARIA_ROLES.has(token)) continue;
      if (token === "none" || token === "presentation") {
        // A presentational role is ignored where the element can take focus or carries global attributes (ARIA 1.2, 5.4.1).
        if (!isFocusable(el) && !GLOBAL_ARIA.some((name) => hasAttr(el, name))) return "none";
        break;
      }
      return token === "image" ? "img" : token;
    }
  }
  return implicitRole(el);
}

function implicitRole(el) {
  const tag = tagOf(el);
  switch (tag) {
    case "div": case "span": return "generic";
    case "a": case "area": return hasAttr(el, "href") || hasAttr(el, "xlink:href") ? "link" : "generic";
    case "input": return inputRole(el);
    case "select": return listSelect(el) ? "listbox" : "combobox";
    case "img": return imageRole(el);
    case "svg": return hasAttr(el, "aria-label") || hasAttr(el, "aria-labelledby") || query(el, ":scope > title") ? "img" : "generic";
    case "td": return cellRole(el);
    case "th": return headerRole(el);
    case "header": return inSection(el) ? "generic" : "banner";
    case "footer": return inSection(el) ? "generic" : "contentinfo";
    case "object": return holdsFrame(el, tag) ? "iframe" : "generic";
    case "section": return explicitlyNamed(el) ? "region" : "generic";
    case "form": return explicitlyNamed(el) ? "form" : "generic";
    case "summary": return isSummary(el) ? "button" : "generic";
    case "li": return "listitem";
    default: return TAG_ROLES[tag] ?? "generic";
  }
}

// A page in an `object` is a frame like any other.
const objectWindow = getter(HTMLObjectElement.prototype, "contentWindow");
const holdsFrame = (el, tag) => tag === "iframe" || tag === "frame" || (tag === "object" && isHTML(el) && objectWindow(el) !== null);

function inputRole(el) {
  const type = inputType(el);
  if (type === "hidden") return "none";
  if (TEXT_LIKE.has(type) && hasAttr(el, "list")) return "combobox";
  if (type === "checkbox" && hasAttr(el, "switch") && "switch" in HTMLInputElement.prototype) return "switch";
  return INPUT_ROLES[type] ?? "textbox";
}

const selectMultiple = getter(HTMLSelectElement.prototype, "multiple");
const selectSize = getter(HTMLSelectElement.prototype, "size");
const listSelect = (el) => selectMultiple(el) || selectSize(el) > 1;

function imageRole(el) {
  if (attr(el, "alt") === "" && !hasAttr(el, "title") && !hasAttr(el, "aria-label") && !hasAttr(el, "aria-labelledby"))
    return "none";
  return "img";
}

function cellRole(el) {
  const table = closest(el, "table, [role]");
  const role = table ? attr(table, "role") : null;
  return role === "grid" || role === "treegrid" ? "gridcell" : "cell";
}

function headerRole(el) {
  const scope = (attr(el, "scope") || "").toLowerCase();
  if (scope === "row" || scope === "rowgroup") return "rowheader";
  if (scope === "col" || scope === "colgroup") return "columnheader";
  if (closest(el, "thead")) return "columnheader";
  const row = closest(el, "tr");
  return row && query(row, ":scope > td") ? "rowheader" : "columnheader";
}

const inSection = (el) => closest(el, "article, aside, main, nav, section") !== null;
const explicitlyNamed = (el) => Boolean(attr(el, "aria-label")?.trim() || attr(el, "aria-labelledby") || attr(el, "title")?.trim());

function isSummary(el) {
  const parent = parentNode(el);
  return parent instanceof HTMLDetailsElement && query(parent, ":scope > summary") === el;
}

const NATIVE_FOCUS = "a[href], area[href], button, input:not([type=hidden]), select, textarea, summary, iframe, [tabindex], [contenteditable]:not([contenteditable=false])";

const FORM_TAGS = new Set(["button", "input", "select", "textarea"]);

function isFocusable(el) {
  const tag = tagOf(el);
  if (!FORM_TAGS.has(tag)) return matches(el, NATIVE_FOCUS);
  if (isAmong(el, ":disabled")) return false;
  return tag !== "input" || (htmlTag(el) === tag && inputType(el) !== "hidden") || matches(el, NATIVE_FOCUS);
}

const isEditingHost = (el) => {
  const value = attr(el, "contenteditable");
  return value !== null && value !== "false" && isHTML(el) && contentEditableOf(el);
};

// Interactive: a role that people operate, or a capability beyond focus.
function isInteractive(el, role) {
  if (INTERACTIVE_ROLES.has(role)) return !(role === "option" && isNativeOption(el));
  if (hasAttr(el, "onclick") && role !== "document" && tagOf(el) !== "body") return true;
  return (role === "label" && labelControl(el) !== null) || isEditingHost(el);
}

const isNativeOption = (el) => htmlTag(el) === "option";
const controlOf = getter(HTMLLabelElement.prototype, "control");
const labelControl = (el) => (htmlTag(el) === "label" ? controlOf(el) : null);
