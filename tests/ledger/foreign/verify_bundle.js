// node verify_bundle.js BUNDLE PEM HINT: what @sigstore/verify says. Exits 0 only if it accepts.
const fs = require("node:fs");
const { bundleFromJSON } = require("@sigstore/bundle");
const { Verifier, toSignedEntity, toTrustMaterial } = require("@sigstore/verify");
const crypto = require("node:crypto");

const [, , path, pem, hint] = process.argv;
const bundle = bundleFromJSON(JSON.parse(fs.readFileSync(path, "utf8")));
const key = crypto.createPublicKey(fs.readFileSync(pem));
const trusted = {
  certificateAuthorities: [],
  timestampAuthorities: [],
  tlogs: [],
  ctlogs: [],
  publicKey: (wanted) => {
    if (wanted !== hint) throw new Error("another key: " + wanted);
    return { publicKey: key, validFor: () => true };
  },
};
const verifier = new Verifier(trusted, { tlogThreshold: 0, ctlogThreshold: 0, tsaThreshold: 0, timestampThreshold: 0 });
verifier.verify(toSignedEntity(bundle));
console.log("accepted");
