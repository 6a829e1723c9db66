// What no style sheet of the page speaks of, no element needs to be asked for: whether generated text, a pointer that says
// "click me" or hidden letters are possible at all. Worth its price only in a walk; whoever looks at one element asks it.
// Where there is a shadow root, with sheets of its own, every element is asked.

const ASKED_BEFORE = 200;
const MOST_RULES = 2_000;
const ANY = Object.freeze({ content: true, cursor: true, security: true });

const documentSheets = getter(Document.prototype, "styleSheets");
const documentAdopted = getter(Document.prototype, "adoptedStyleSheets");
const documentAnimations = method(Document.prototype, "getAnimations");

// `what` of ANY: false only where nothing on the page could cause it.
function styleSays(what) {
  if (look === null) return true;
  if (look.sheets === null) {
    if (++look.asked <= ASKED_BEFORE) return true;
    look.sheets = readSheets();
  }
  return look.sheets[what];
}

function readSheets() {
  const found = { content: false, cursor: false, security: false, rules: 0 };
  try {
    const animated = documentAnimations(document).some((a) => !(a instanceof CSSTransition) && !(a instanceof CSSAnimation));
    if (animated) return ANY;
    for (const sheet of [...documentSheets(document), ...documentAdopted(document)]) readRules(sheet.cssRules, found);
    found.cursor ||= documentQueryAll(document, "[style*=cursor i]").length > 0;
    found.security ||= documentQueryAll(document, "[style*=text-security i]").length > 0;
  } catch {
    return ANY; // a sheet of another origin, or more rules than it is worth to read
  }
  return found;
}

// Throws where a sheet does not let itself be read.
function readRules(rules, found) {
  if ((found.rules += rules.length) > MOST_RULES) throw new RangeError("too many rules");
  for (const rule of rules) {
    const { style } = rule;
    if (style) {
      found.cursor ||= style.cursor !== "";
      found.security ||= style.webkitTextSecurity !== "";
      found.content ||= !EMPTY_CONTENT.has(style.content);
    }
    if (rule.styleSheet) readRules(rule.styleSheet.cssRules, found);
    if (rule.cssRules) readRules(rule.cssRules, found);
  }
}

const EMPTY_CONTENT = new Set(["", '""', "none", "normal"]);

// Of a link the browser itself says it, without any sheet.
const hasPointer = (el, tag) => (tag === "a" || tag === "area" || styleSays("cursor")) && styleOf(el).cursor === "pointer";
