"use strict";
// Names of the columns in a packed step, in the order that collect.py writes them.
const STEP = { seq: 0, end: 1, at: 2, group: 3, what: 4, target: 5, outcome: 6, tone: 7, code: 8, rule: 9, waited: 10, looks: 11, took: 12, action: 13, pictures: 14 };
const DATA = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);

// Foreign text never becomes markup: it goes through these two and into text nodes.
const EACH_UNSAFE = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}]/gu;
const code = (c) => "\\u{" + c.codePointAt(0).toString(16) + "}";

// A Cyrillic or Greek letter in a Latin word is there to be read as another: its number stands behind it.
const WORD = /[\p{L}\p{M}]+/gu;
const LATIN = /\p{Script=Latin}/u;
const HAS_ODD = /[\p{Script=Cyrillic}\p{Script=Greek}\p{Script=Armenian}\p{Script=Cherokee}]/u;
const ODD = /[\p{Script=Cyrillic}\p{Script=Greek}\p{Script=Armenian}\p{Script=Cherokee}]/gu;
const ascii = /^[\x20-\x7e]*$/;

function shorten(text, longest) {
  const told = String(text);
  return told.length > longest ? told.slice(0, longest) + "… (" + told.length.toLocaleString("en") + " characters)" : told;
}

function plain(text, longest = 300) {
  const short = shorten(text, longest);
  if (ascii.test(short)) return short;
  const told = HAS_ODD.test(short) ? short.replace(WORD, (word) => (LATIN.test(word) ? word.replace(ODD, (c) => c + code(c)) : word)) : short;
  return told.replace(EACH_UNSAFE, code);
}

// The same, with what was made harmless marked where it stands; line feeds of our own JSON may stay.
function foreign(text, longest = 600, keepLines = false) {
  const short = shorten(text, longest), out = el("bdi");
  const odd = new Set();
  if (HAS_ODD.test(short)) for (const word of short.matchAll(WORD)) if (LATIN.test(word[0])) for (const c of word[0].matchAll(ODD)) odd.add(word.index + c.index);
  let from = 0;
  const mark = (index, c, shown) => {
    if (index > from) out.append(short.slice(from, index));
    out.append(el("span", { class: "ctl" }, shown));
    from = index + c.length;
  };
  const found = [...short.matchAll(EACH_UNSAFE)].map((m) => [m.index, m[0], code(m[0])]);
  for (const at of odd) found.push([at, short[at], short[at] + code(short[at])]);
  for (const [index, c, shown] of found.sort((a, b) => a[0] - b[0])) if (!(keepLines && c === "\n")) mark(index, c, shown);
  out.append(short.slice(from));
  return out;
}

function el(name, attributes = {}, ...inner) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) if (value !== null && value !== false) made.setAttribute(key, value === true ? "" : value);
  made.append(...inner.filter((x) => x !== null && x !== undefined && x !== ""));
  return made;
}

const opened = new Map();
// A packed piece: base64, gzip, JSON. The last few stay open.
function piece(number) {
  if (!opened.has(number)) {
    if (opened.size > 40) opened.delete(opened.keys().next().value);
    opened.set(number, unpack($("p" + number).textContent));
  }
  return opened.get(number);
}

async function unpack(text) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

async function recordOf(run, seq) {
  const part = run.parts[Math.floor(seq / run.each)];
  return part === undefined ? null : (await piece(part))[seq % run.each] ?? null;
}

const clock = (ms) => (ms < 60000 ? (ms / 1000).toFixed(2) + " s" : Math.floor(ms / 60000) + ":" + String(Math.floor(ms / 1000) % 60).padStart(2, "0"));
const words = (text) => String(text).replaceAll("_", " ");
