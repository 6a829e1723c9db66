// Retained identity: a number for a node, for as long as this document lives. A number is never used again.

const idOfNode = new WeakMap();
const nodeOfId = new Map();
let lastId = 0;

function idOf(node) {
  let id = idOfNode.get(node);
  if (id === undefined) {
    id = "n" + ++lastId;
    idOfNode.set(node, id);
    nodeOfId.set(id, new WeakRef(node));
  }
  return id;
}

// The node of an id: null when it was removed or collected.
function nodeOf(id) {
  const node = nodeOfId.get(id)?.deref();
  if (node === undefined) {
    nodeOfId.delete(id);
    return null;
  }
  return isConnected(node) ? node : null;
}
