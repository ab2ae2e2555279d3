"use strict";
const all = (selector, root = document) => [...root.querySelectorAll(selector)];

function reveal(element) {
  for (let at = element; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
}

function follow() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  reveal(target.querySelector(":scope > .evidence") || target);
  target.scrollIntoView({ block: "start" });
  if (target.tabIndex === -1) target.focus({ preventScroll: true });
}

function step(selector, direction) {
  const items = all(selector).filter((item) => !item.closest("details:not([open])"));
  const line = 24;
  const below = items.filter((item) => item.getBoundingClientRect().top > line + 1);
  const above = items.filter((item) => item.getBoundingClientRect().top < line - 24);
  const next = direction > 0 ? below[0] : above.at(-1);
  if (!next) return;
  next.scrollIntoView({ block: "start" });
  next.focus({ preventScroll: true });
}

addEventListener("hashchange", follow);
addEventListener("click", (event) => {
  const link = event.target.closest('a[href^="#"]');
  if (link && link.hash === location.hash) follow();
  const button = event.target.closest("[data-open]");
  if (button) all("details[data-matched]", document.getElementById(button.dataset.open)).forEach((one) => { one.open = true; });
});
addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select")) return;
  const move = { n: [".match", 1], p: [".match", -1], j: [".hit", 1], k: [".hit", -1] }[event.key];
  if (move) step(...move);
});
addEventListener("beforeprint", () => all("details.evidence").forEach((one) => { one.open = true; }));

addEventListener("pointerover", (event) => {
  const passage = event.target.closest(".passage");
  all(".lit").forEach((one) => one.classList.remove("lit"));
  if (!passage) return;
  const scope = passage.closest(".match, .hit");
  const own = passage.dataset.matches.split(" ");
  all(".passage", scope).forEach((one) => {
    if (one.dataset.matches.split(" ").some((match) => own.includes(match))) one.classList.add("lit");
  });
});

const narrow = matchMedia("(max-width: 44rem)"); // as in the style sheet
const numbers = 28; // pixels that the number of a section needs

function drawMap(map) {
  const readout = map.parentElement.querySelector(".readout");
  const cursor = map.querySelector(".cursor");
  const svg = map.querySelector("svg");
  const [size, left, top] = [map.dataset.cell, map.dataset.left, map.dataset.top].map(Number);
  const fit = () => { // without names there is no need for their room
    svg.style.marginLeft = narrow.matches ? `${numbers - left}px` : "";
    svg.style.marginTop = narrow.matches ? `${numbers - top}px` : "";
  };
  narrow.addEventListener("change", fit);
  fit();
  let data = null, values = null, row = 0, column = 0;
  const load = () => {
    if (data) return;
    data = JSON.parse(document.getElementById(map.dataset.map).textContent);
    values = new Map(data.cells.map(([i, j, value]) => [`${i},${j}`, { value }]));
  };
  const show = () => {
    const found = values.get(`${row},${column}`);
    const match = found ? matchAt(row, column) : 0;
    const rest = data.all ? "adds nothing" : "adds less than the cells that are listed";
    const adds = found ? `adds ${found.value.toFixed(4)}` : rest;
    readout.textContent = `${row + 1} ${data.rows[row]} → ${column + 1} ${data.columns[column]}: ${adds}${match ? `, match ${match}` : ""}`;
    cursor.setAttribute("x", column * size);
    cursor.setAttribute("y", row * size);
    cursor.setAttribute("visibility", "visible");
  };
  const matchAt = (i, j) => {
    const at = all(".shown", svg).findIndex((one) => {
      const box = one.querySelector("rect");
      return Number(box.getAttribute("x")) === j * size && Number(box.getAttribute("y")) === i * size;
    });
    return at + 1;
  };
  const pointed = (event) => {
    load();
    const box = svg.getBoundingClientRect();
    const i = Math.floor((event.clientY - box.top - top) / size);
    const j = Math.floor((event.clientX - box.left - left) / size);
    if (i < 0 || j < 0 || i >= data.rows.length || j >= data.columns.length) return false;
    [row, column] = [i, j];
    show();
    return true;
  };
  map.addEventListener("pointermove", pointed);
  map.addEventListener("click", (event) => {
    if (!pointed(event)) return;
    const match = matchAt(row, column);
    if (match) document.querySelector(`a[href="#${data.key}-match-${match}"]`).click();
  });
  map.addEventListener("keydown", (event) => {
    const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!move) return;
    event.preventDefault();
    load();
    row = Math.min(Math.max(row + move[0], 0), data.rows.length - 1);
    column = Math.min(Math.max(column + move[1], 0), data.columns.length - 1);
    show();
  });
}

all("[data-map]").forEach(drawMap);
follow();
