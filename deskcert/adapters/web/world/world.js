// What the adapter calls. Everything goes in and out as JSON text: one string is ten times cheaper than nested objects.

const parsed = new Promise((resolve) => {
  if (documentState() !== "loading") resolve("parsed");
  else addEventListener("DOMContentLoaded", () => resolve("parsed"), { once: true, capture: true });
});
listen();
globalThis.deskcert = Object.freeze({
  walk: (options) => JSON.stringify(walk(JSON.parse(options))),
  probe: (id, command, key, value, to) => JSON.stringify(probe(id, command, key, value, to)),
  perform: (id, request) => JSON.stringify(perform(id, JSON.parse(request))),
  node: (id) => nodeOf(id),
  outlined: (data, box) => outlined(data, JSON.parse(box)),
  arm: (id, request) => JSON.stringify(arm(id, JSON.parse(request))),
  disarm: () => JSON.stringify(disarm()),
  watch: (number) => String(watch(number)),
  mayDrop: () => String(mayDrop()),
  unwatch: () => String(unwatch()),
  steady: async (id) => String(await steady(id)),
  ready: () => parsed,
  id: (node) => idOf(node),
  adopt: (host, root) => adopt(host, root),
  shown: (id) => String(shownAtAll(id)),
  through: (id, x, y, mayScroll) => JSON.stringify(during(() => through(id, x, y, mayScroll))),
  placed: (id, box) => JSON.stringify(placed(id, JSON.parse(box))),
  reveal: (id) => JSON.stringify(reveal(id)),
  window: () => JSON.stringify({ title: documentTitle(), url: documentURL() }),
});
