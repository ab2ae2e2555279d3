// Requests to the server: the token, errors in words, and answers that come line by line.

const TOKEN = "longmatch-token"; // kept by the tab alone

/** An error for people: what does not fit, and what to do. */
export class Problem extends Error {
  constructor(message, next, code = "") {
    super(message);
    this.next = next;
    this.code = code;
  }
}

export const setToken = (token) => sessionStorage.setItem(TOKEN, token);

async function send(path, options) {
  const token = sessionStorage.getItem(TOKEN);
  const headers = { ...options.headers, ...(token ? { Authorization: `Bearer ${token}` } : {}) };
  let response;
  try {
    response = await fetch(path, { ...options, headers, credentials: "omit" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem("The server does not answer", "check that longmatch serve is running, then search again", "unreachable");
  }
  if (!response.ok) throw await problemOf(response);
  return response;
}

async function problemOf(response) {
  try {
    const { error } = await response.json();
    return new Problem(error.message, error.next, error.code);
  } catch {
    return new Problem(`The server answered with status ${response.status}`, "search again, or read the log of the server");
  }
}

/** The JSON of a GET request. */
export async function get(path, parameters = {}) {
  const text = new URLSearchParams(parameters).toString();
  return (await send(text ? `${path}?${text}` : path, {})).json();
}

/**
 * Search, and hand on each line of the answer as it comes.
 * query: { file } or { text } or { id }; parameters: as of POST /v1/search, and with_itself and report.
 */
export async function search(query, parameters, signal, onLine) {
  const response = await send(query.file ? "page/search/file" : "page/search", { method: "POST", signal, ...body(query, parameters) });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "", isComplete = false;
  for (;;) {
    const { value, done } = await received(reader);
    const lines = (rest + (value ?? "")).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      const one = JSON.parse(line);
      if (one.error) throw new Problem(one.error.message, one.error.next, one.error.code);
      isComplete ||= one.piece === "tail" || one.piece === "report";
      onLine(one);
    }
    if (done) break;
  }
  if (!isComplete) throw cutOff();
}

async function received(reader) {
  try {
    return await reader.read();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw cutOff();
  }
}

const cutOff = () => new Problem("The answer of the server broke off", "search again", "broken");

function body(query, parameters) {
  if (!query.file) {
    const own = query.id ? { doc_id: query.id } : { text: query.text };
    return { headers: { "Content-Type": "application/json" }, body: JSON.stringify({ ...own, ...parameters }) };
  }
  const form = new FormData();
  for (const [name, value] of Object.entries(parameters)) {
    if (value === null || (typeof value === "object" && !Array.isArray(value))) continue;
    for (const one of [value].flat()) form.append(name, one);
  }
  form.append("file", query.file, query.file.name);
  return { body: form };
}
