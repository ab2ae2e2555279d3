// The metadata filter: a line in the language of the command line, and a helper that writes conditions into it.

import { get } from "./requests.js";

const at = (id) => document.getElementById(id);
const OF_COLUMN = ["doc_id", "title", "source"]; // every document has them
const TESTS = { "=": "is", "!=": "is not", ">=": "at least", "<=": "at most", like: "contains", exists: "is there" };
const BY_TYPE = { number: ["=", ">=", "<=", "!=", "exists"], "true or false": ["=", "exists"] };
const OF_TEXT = ["=", "like", "!=", ">=", "<=", "exists"];
const WORD = /^[\p{L}_][\p{L}\p{N}_.:-]*$/u;
const RESERVED = ["and", "or", "not", "in", "like", "exists", "true", "false"];
let fields = new Map();

const quotedField = (name) => (WORD.test(name) && !RESERVED.includes(name.toLowerCase()) ? name : `\`${name.replaceAll("`", "``")}\``);
const quotedText = (text) => `'${text.replaceAll("'", "''")}'`;

/** A condition as text; value: a text, a number, true or false. */
export function condition(name, test, value) {
  if (test === "exists") return `${quotedField(name)} exists`;
  if (test === "like") return `${quotedField(name)} like ${quotedText(`%${value}%`)}`;
  return `${quotedField(name)} ${test} ${typeof value === "string" ? quotedText(value) : value}`;
}

/** Join a condition to the filter; one that is there already is not repeated. */
export function add(text) {
  const filter = at("where").value.trim();
  if (filter.split(" and ").includes(text)) return;
  at("where").value = !filter ? text : `${/\bor\b/i.test(filter) && !filter.startsWith("(") ? `(${filter})` : filter} and ${text}`;
}

/** Show the fields of the index. */
export function setFields(given) {
  fields = new Map(given.map((one) => [one.name, one]));
  const option = (name) => new Option(fields.has(name) ? `${name} (${fields.get(name).n_documents.toLocaleString("en")})` : name, name);
  at("field").replaceChildren(...[...fields.keys(), ...OF_COLUMN.filter((name) => !fields.has(name))].map(option));
  at("syntax").textContent = example(given);
  chooseField();
}

function example(given) {
  const commonest = (type, isFit) => given.filter((one) => one.types.join() === type && !one.name.startsWith("left_out_") && isFit(one)).sort((a, b) => b.n_documents - a.n_documents)[0];
  const number = commonest("number", (one) => one.examples.length > 1);
  const text = commonest("text", (one) => one.examples.length > 1 && !/^\d/.test(one.examples[0]));
  const conditions = [text && condition(text.name, "=", text.examples[0]), number && condition(number.name, ">=", number.examples[0])].filter(Boolean);
  return conditions.length ? `For example: ${conditions.join(" and ")}` : "";
}

const typeOf = (name) => (fields.get(name)?.types.length === 1 ? fields.get(name).types[0] : "text");

function chooseField() {
  const tests = BY_TYPE[typeOf(at("field").value)] ?? OF_TEXT;
  at("operator").replaceChildren(...tests.map((test) => new Option(TESTS[test], test)));
  at("value").value = "";
  at("values").replaceChildren();
  chooseTest();
}

function chooseTest() {
  at("value").disabled = at("operator").value === "exists";
}

async function suggest() {
  const name = at("field").value, typed = at("value").value.trim();
  if (!fields.has(name)) return;
  const { values } = await get("v1/values", { field: name, containing: typed, limit: 20 });
  if (name !== at("field").value || typed !== at("value").value.trim()) return;
  const label = (n) => `${n.toLocaleString("en")} document${n === 1 ? "" : "s"}`;
  at("values").replaceChildren(...values.map((one) => new Option(label(one.documents), one.value)));
}

function typedValue(name, text) {
  const type = typeOf(name);
  if (type === "number" && text !== "" && Number.isFinite(Number(text))) return Number(text);
  if (type === "true or false") return text.toLowerCase() === "true";
  return text;
}

function addTyped() {
  const [name, test, text] = [at("field").value, at("operator").value, at("value").value.trim()];
  if (!name || (test !== "exists" && !text)) return at("value").focus();
  add(condition(name, test, typedValue(name, text)));
  at("value").value = "";
  at("where").focus();
}

/** Follow the helper; `onProblem` is called with errors. */
export function start(onProblem) {
  at("field").addEventListener("change", () => { chooseField(); suggest().catch(onProblem); });
  at("operator").addEventListener("change", chooseTest);
  at("value").addEventListener("input", () => suggest().catch(onProblem));
  at("value").addEventListener("focus", () => suggest().catch(onProblem));
  at("add").addEventListener("click", addTyped);
  at("value").addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault(); // Enter in a condition adds it, and does not search yet
    addTyped();
  });
}
