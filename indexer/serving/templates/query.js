// What to search with: a file, a text, or a document of the index.

import { Problem, get } from "./requests.js";

const at = (id) => document.getElementById(id);
const ways = [...document.querySelectorAll("[name=way]")];
let file = null, mostBytes = Infinity;

export const setMostBytes = (n) => { mostBytes = n; };

function show(way) {
  ways.forEach((one) => { one.checked = one.value === way; });
  document.querySelectorAll("[data-way]").forEach((one) => { one.hidden = one.dataset.way !== way; });
}

function setFile(given) {
  file = given;
  at("chosen").textContent = given ? `${given.name}, ${size(given.size)}` : "";
  at("chosen").hidden = !given;
}

function size(bytes) {
  return bytes < 1e6 ? `${Math.max(1, Math.round(bytes / 1e3)).toLocaleString("en")} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

/** Show a query in the form. */
export function fill(query) {
  if (query.file) setFile(query.file);
  if (query.text) at("text").value = query.text;
  if (query.id) at("doc").value = query.id;
  show(query.file ? "file" : query.text ? "text" : "id");
}

/** The query of the form, as `requests.search` takes it. */
export function current() {
  const way = ways.find((one) => one.checked).value;
  if (way === "file") {
    if (!file) throw new Problem("No file is chosen", "choose one, drop one on the page, or paste a text");
    if (file.size > mostBytes) {
      throw new Problem(`${file.name} has ${size(file.size)}, the server takes ${size(mostBytes)}`, "send a smaller file, or start the server with a larger --max-bytes");
    }
    return { file };
  }
  const text = way === "text" ? at("text").value : at("doc").value.trim();
  if (!text.trim()) throw new Problem(way === "text" ? "The text is empty" : "No document is named", way === "text" ? "paste some text" : "type a part of its title or name and choose it");
  return way === "text" ? { text } : { id: text };
}

const quoted = (text) => `'${text.replaceAll("'", "''")}'`;

async function suggest() {
  const typed = at("doc").value.trim();
  const pattern = quoted(`%${typed}%`);
  const { documents } = await get("v1/documents", { limit: 12, ...(typed ? { where: `title like ${pattern} or doc_id like ${pattern}` } : {}) });
  if (typed !== at("doc").value.trim()) return;
  at("docs").replaceChildren(...documents.map((one) => new Option(one.title, one.id)));
}

/** Follow the form; `onQuery` is called when a file is chosen or dropped, `onProblem` with errors. */
export function start(onQuery, onProblem) {
  const take = (given) => {
    if (!given) return;
    fill({ file: given });
    onQuery();
  };
  ways.forEach((one) => one.addEventListener("change", () => show(one.value)));
  at("file").addEventListener("change", (event) => take(event.target.files[0]));
  at("doc").addEventListener("input", () => suggest().catch(onProblem));
  at("doc").addEventListener("focus", () => suggest().catch(onProblem));
  let depth = 0; // dragenter and dragleave come for every element on the way
  const drag = (change) => {
    depth = Math.max(0, depth + change);
    document.body.toggleAttribute("data-drag", depth > 0);
  };
  addEventListener("dragenter", () => drag(1));
  addEventListener("dragleave", () => drag(-1));
  addEventListener("dragover", (event) => event.preventDefault());
  addEventListener("drop", (event) => {
    event.preventDefault();
    drag(-depth);
    take(event.dataTransfer.files[0]);
  });
  addEventListener("paste", (event) => {
    if (event.target.closest?.("input, textarea, select")) return;
    if (event.clipboardData.files.length) return take(event.clipboardData.files[0]);
    const text = event.clipboardData.getData("text/plain");
    if (!text.trim()) return;
    fill({ text });
    at("text").focus();
  });
}
