// Shows a search: how far it has come, its problem, or its result piece by piece. The HTML comes from the server.

/* global drawMap, follow */

const at = (id) => document.getElementById(id);
const STAGES = { waiting: "Waiting for other searches", reading: "Reading the document", searching: "Searching", arranging: "Arranging the evidence", sending: "Sending" };
const SUBJECTS = { query: "Encoding your document", candidates: "Encoding documents of the index" };

/** Begin a search: forget what was shown before. */
export function begin() {
  problem(null);
  at("bar").removeAttribute("value");
  stage(STAGES.sending, "");
  at("progress").hidden = false;
  at("progress").scrollIntoView({ block: "nearest" });
}

/** Begin to show another result. */
export function clear() {
  for (const id of ["head", "hits", "tail"]) at(id).replaceChildren();
  for (const id of ["actions", "pages", "left-out"]) at(id).hidden = true;
  at("result").hidden = false;
}

export function end() {
  at("progress").hidden = true;
}

function stage(text, detail) {
  if (at("stage").textContent !== text) at("status").textContent = text; // read out once for each stage
  at("stage").textContent = text;
  at("detail").textContent = detail;
}

/** Show how far the search has come; line: of the answer. */
export function progress({ stage: name, subject, tokens_done: done, tokens_total: total }) {
  const bar = at("bar");
  if (name !== "encoding") {
    bar.removeAttribute("value");
    return stage(STAGES[name], "");
  }
  bar.max = Math.max(1, total);
  bar.value = done;
  stage(SUBJECTS[subject], `${done.toLocaleString("en")} of ${subject === "query" ? "" : "about "}${total.toLocaleString("en")} tokens`);
}

/** Show an error; null removes it. */
export function problem(error) {
  if (!error) return at("problem").replaceChildren();
  const box = document.createElement("div");
  const next = error.next ? `${error.next[0].toUpperCase()}${error.next.slice(1)}.` : "";
  const message = document.createElement("p"), step = document.createElement("p");
  message.textContent = `${error.message[0].toUpperCase()}${error.message.slice(1)}.`;
  step.textContent = next;
  box.className = "problem";
  box.append(message, step);
  at("problem").replaceChildren(box);
  box.scrollIntoView({ block: "nearest" });
}

function parsed(html) {
  const template = document.createElement("template");
  template.innerHTML = html; // of our own templates, which escape every value
  return template.content;
}

/** Show a piece of the result. */
export function piece({ piece: kind, html }) {
  const place = at({ head: "head", hit: "hits", tail: "tail" }[kind]);
  const content = parsed(html);
  const maps = [...content.querySelectorAll("[data-map]")];
  place.append(content);
  maps.forEach(drawMap);
}

/** Show what surrounds the hits: copies that were left out, pages, the link. */
export function facts({ n_hits: n, n_found: all, left_out: copies }, { offset, k }, isLinkable) {
  at("left-out").hidden = !copies.length;
  at("left-out").textContent = `Left out of the hits, as the content is that of the query: ${copies.join(", ")}`;
  at("pages").hidden = !offset && all <= offset + n;
  at("previous").disabled = !offset;
  at("next").disabled = !n || all <= offset + k;
  at("range").textContent = n ? `${(offset + 1).toLocaleString("en")} to ${(offset + n).toLocaleString("en")} of ${all.toLocaleString("en")}` : "";
  at("actions").hidden = false;
  at("copy").hidden = !isLinkable;
  at("link-note").textContent = isLinkable ? "" : "Your document is not stored, so there is no link to this result. The report is a file to send.";
}

/** Announce a finished result, and open the hit that the link names. */
export function finish({ title, n_hits: n, n_found: all, hits }, { hit, mode }) {
  at("status").textContent = mode === "novelty" ? `${n} sections of ${title}` : `${n} of ${all.toLocaleString("en")} hits for ${title}`;
  if (document.activeElement === document.body) at("q1").focus({ preventScroll: true }); // the form has closed
  const rank = hits.indexOf(hit);
  if (location.hash) return follow();
  if (rank < 0) return;
  const shown = at("hits").children[rank];
  shown.querySelector(".evidence").open = true;
  shown.scrollIntoView({ block: "start" });
}
