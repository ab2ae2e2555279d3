// The address of the page: everything that a link can carry, and nothing of a file or a pasted text.

const KINDS = ["references", "acknowledgements", "appendix", "boilerplate"];
const MODES = ["similar", "containment", "novelty"];
const PAGE_SIZES = [5, 10, 20];

function count(text, least, fallback) {
  const value = Number.parseInt(text ?? "", 10);
  return Number.isInteger(value) && value >= least ? value : fallback;
}

/** The parameters in the address of the page; what cannot be read is the default. */
export function read() {
  const given = new URLSearchParams(location.search);
  const k = count(given.get("k"), 1, 10);
  return {
    id: given.get("id") ?? "",
    where: given.get("where") ?? "",
    skip: (given.get("skip") ?? "").split(",").filter((kind) => KINDS.includes(kind)),
    k: PAGE_SIZES.includes(k) ? k : 10,
    offset: count(given.get("offset"), 0, 0),
    mode: MODES.includes(given.get("mode")) ? given.get("mode") : "similar",
    weights: given.get("weights") ?? "",
    diversify: given.has("diversify"),
    exact: given.has("exact"),
    itself: given.has("itself"),
    hit: given.get("hit") ?? "",
  };
}

/** The address of parameters; defaults are left out. */
export function address(parameters) {
  const given = new URLSearchParams();
  const { id, where, skip, k, offset, mode, weights, diversify, exact, itself, hit } = parameters;
  if (id) given.set("id", id);
  if (where) given.set("where", where);
  if (skip.length) given.set("skip", skip.join(","));
  if (k !== 10) given.set("k", k);
  if (offset) given.set("offset", offset);
  if (mode !== "similar") given.set("mode", mode);
  if (weights) given.set("weights", weights);
  if (diversify) given.set("diversify", "1");
  if (exact) given.set("exact", "1");
  if (itself) given.set("itself", "1");
  if (hit) given.set("hit", hit);
  const text = given.toString();
  return text ? `?${text}` : location.pathname;
}
