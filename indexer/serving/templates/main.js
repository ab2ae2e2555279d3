// The page: form, address and result kept together.

/* global follow */

import { address, read } from "./address.js";
import * as filter from "./filter.js";
import * as query from "./query.js";
import { get, search, setToken } from "./requests.js";
import * as results from "./results.js";

const at = (id) => document.getElementById(id);
const wide = matchMedia("(min-width: 64rem)");
const kept = []; // files and texts of this tab, by the number in its history
let running = null; // what stops the search
let shown = null; // { query, parameters, facts } of the result
let isUsed = false; // the form, by the user

function problem(error) {
  if (error.name === "AbortError") return;
  if (!error.next) console.error(error); // ours, not the user's
  const needsToken = ["no_token", "wrong_token"].includes(error.code);
  at("access").hidden = !needsToken;
  results.problem(needsToken && error.code === "no_token" ? null : error);
  if (needsToken) at("token").focus();
}

/** The parameters of the form. */
function typed() {
  return {
    id: "",
    where: at("where").value.trim(),
    skip: [...document.querySelectorAll("[name=skip]:checked")].map((one) => one.value),
    k: Number(at("k").value),
    offset: 0,
    mode: at("mode").value,
    weights: at("weights").value.trim(),
    diversify: at("diversify").checked,
    exact: at("exact").checked,
    itself: at("itself").checked,
    hit: "",
  };
}

function fill(parameters) {
  at("where").value = parameters.where;
  document.querySelectorAll("[name=skip]").forEach((one) => { one.checked = parameters.skip.includes(one.value); });
  at("k").value = parameters.k;
  at("mode").value = parameters.mode;
  at("weights").value = parameters.weights;
  at("diversify").checked = parameters.diversify;
  at("exact").checked = parameters.exact;
  at("itself").checked = parameters.itself;
  fitMode();
}

/** Hide what novelty has no use for: it lists all sections, and scores every document. */
function fitMode() {
  document.querySelector("[data-of=rankings]").hidden = at("mode").value === "novelty";
}

function sent({ where, skip, k, offset, mode, weights, diversify, exact, itself }) {
  if (mode === "novelty") return { where: where || null, skip, mode, with_itself: itself };
  return { where: where || null, skip, k, offset, mode, weights: weights || {}, diversify, exact, with_itself: itself };
}

/** Run one search and hand its lines on; false where it failed or was stopped. */
async function run(one, parameters, onPiece) {
  running?.abort();
  const own = (running = new AbortController());
  results.begin();
  try {
    await search(one, parameters, own.signal, (line) => (line.piece ? onPiece(line) : results.progress(line)));
    return true;
  } catch (error) {
    if (running === own) problem(error);
    return false;
  } finally {
    if (running === own) {
      running = null;
      results.end();
    }
  }
}

/** Search and show the result; push: whether it becomes a new place in the history. */
async function show(one, parameters, push) {
  const linked = { ...parameters, id: one.id ?? "" };
  const isDone = await run(one, sent(parameters), (line) => {
    if (line.piece !== "facts") return results.piece(line);
    if (push) history.pushState({ kept: one.id ? null : kept.push(one) - 1 }, "", address(linked));
    shown = { query: one, parameters: linked, facts: line };
    begin(line, linked);
  });
  if (isDone) results.finish(shown.facts, parameters);
}

function begin(facts, parameters) {
  document.body.dataset.view = "result";
  document.title = `${facts.title} – longmatch`;
  at("access").hidden = true;
  results.clear();
  results.facts(facts, parameters, Boolean(parameters.id));
  if (!wide.matches) at("panel").open = false;
  scrollTo({ top: 0 });
}

/** Search with what the form holds. */
function submit() {
  isUsed = true;
  try {
    show(query.current(), typed(), true);
  } catch (error) {
    problem(error);
  }
}

/** Search with the same query and other parameters. */
const again = (change) => show(shown.query, { ...shown.parameters, hit: "", ...change }, true);

const withoutHit = (parameters) => address({ ...parameters, hit: "" });

/** Whether the place in the history belongs to the result that is shown. */
function isSameResult() {
  if (!shown || document.body.dataset.view !== "result" || withoutHit(read()) !== withoutHit(shown.parameters)) return false;
  return Boolean(shown.parameters.id) || kept[history.state?.kept] === shown.query;
}

/** Show what the address and the history say: at the beginning, and on the way back and forth. */
function restore() {
  const parameters = read();
  fill(parameters);
  const one = parameters.id ? { id: parameters.id } : kept[history.state?.kept];
  if (one) {
    query.fill(one);
    return show(one, parameters, false);
  }
  running?.abort();
  document.body.dataset.view = "start";
  document.title = "longmatch";
  at("panel").open = true;
  at("result").hidden = true;
}

async function describe() {
  const index = await get("v1/index");
  const n = index.documents.toLocaleString("en");
  const vectors = !index.encoder ? "words alone" : index.documents_with_vectors < index.documents ? `${index.documents_with_vectors.toLocaleString("en")} with vectors` : "all with vectors";
  at("about").textContent = `${index.name}: ${n} documents, ${vectors}`;
  query.setMostBytes(index.max_bytes);
  filter.setFields(index.fields);
}

/** Wait until the index is loaded, describe it, and show what the address says, unless the form was used meanwhile. */
async function load() {
  try {
    await describe();
  } catch (error) {
    if (error.code !== "busy" && error.code !== "loading") return problem(error);
    at("about").textContent = "The index is being loaded…";
    return setTimeout(load, 1000);
  }
  if (!isUsed) restore();
}

async function copyLink() {
  try {
    await navigator.clipboard.writeText(location.href);
    at("link-note").textContent = "Copied";
  } catch {
    at("link-note").textContent = `Copy it from here: ${location.href}`; // clipboards are for HTTPS and this machine alone
  }
}

async function saveReport() {
  const { query: one, parameters, facts } = shown;
  await run(one, { ...sent(parameters), report: true }, ({ html }) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([html], { type: "text/html" }));
    link.download = `${facts.title.replace(/[^\p{L}\p{N}]+/gu, "-").slice(0, 60)}-report.html`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  });
}

function rememberHit(event) {
  const evidence = event.target;
  if (!shown || !evidence.matches?.("#hits .evidence") || !evidence.open) return;
  const hit = shown.facts.hits[[...at("hits").children].indexOf(evidence.closest(".hit"))];
  if (shown.parameters.hit === hit) return;
  shown.parameters.hit = hit;
  if (shown.parameters.id) history.replaceState(history.state, "", address(shown.parameters) + location.hash);
}

function addValue(event) {
  const button = event.target.closest?.("button[data-field]");
  if (!button || !shown) return;
  filter.add(filter.condition(button.dataset.field, "=", JSON.parse(button.dataset.value)));
  again({ where: at("where").value, offset: 0 });
}

at("search").addEventListener("input", () => { isUsed = true; });
at("search").addEventListener("submit", (event) => { event.preventDefault(); submit(); });
at("access").addEventListener("submit", (event) => {
  event.preventDefault();
  setToken(at("token").value.trim());
  at("access").hidden = true;
  load();
});
at("mode").addEventListener("change", fitMode);
at("stop").addEventListener("click", () => running?.abort());
at("copy").addEventListener("click", copyLink);
at("save").addEventListener("click", saveReport);
at("previous").addEventListener("click", () => again({ offset: Math.max(0, shown.parameters.offset - shown.parameters.k) }));
at("next").addEventListener("click", () => again({ offset: shown.parameters.offset + shown.parameters.k }));
at("hits").addEventListener("toggle", rememberHit, true);
at("hits").addEventListener("click", addValue);
addEventListener("popstate", () => (isSameResult() ? follow() : restore()));
addEventListener("click", (event) => {
  const link = event.target.closest?.('main a[href^="#"]');
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault(); // the browser would forget which file or text this place belongs to
  history.pushState(history.state, "", location.search + link.hash);
  follow();
});
addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select")) return;
  event.preventDefault();
  at("panel").open = true;
  document.querySelector("[name=way]:checked").focus();
});
wide.addEventListener("change", () => { if (wide.matches) at("panel").open = true; });

query.start(submit, problem);
filter.start(problem);
load();
