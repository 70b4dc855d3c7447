// Sorts and filters the tables. Without it the page reads the same: nothing is made by script but buttons and fields.
"use strict";

function valueOf(row, column) {
  const cell = row.cells[column];
  const text = cell.dataset.value ?? cell.textContent.trim();
  const figure = text === "inf" ? Infinity : Number(text);
  return text === "" ? null : Number.isNaN(figure) ? text : figure;
}

function compare(a, b, sign) {
  if (a === null || b === null) return (a === null) - (b === null);
  return sign * (typeof a === typeof b ? (a > b) - (a < b) : typeof a === "number" ? -1 : 1);
}

function sort(table, column) {
  const head = table.tHead.rows[0].cells;
  const sign = head[column].getAttribute("aria-sort") === "descending" ? 1 : -1;
  for (const cell of head) cell.removeAttribute("aria-sort");
  head[column].setAttribute("aria-sort", sign === 1 ? "ascending" : "descending");
  const rows = [...table.tBodies[0].rows];
  rows.sort((a, b) => compare(valueOf(a, column), valueOf(b, column), sign));
  table.tBodies[0].append(...rows);
}

function addFilter(table) {
  const bar = document.createElement("p");
  bar.className = "filter";
  bar.innerHTML = '<label>Filter <input type="search"></label> <output></output>';
  const rows = [...table.tBodies[0].rows];
  bar.querySelector("input").addEventListener("input", (event) => {
    const words = event.target.value.toLowerCase().split(/\s+/);
    for (const row of rows) row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
    bar.querySelector("output").textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} rows`;
  });
  table.closest(".wide").before(bar);
}

for (const table of document.querySelectorAll("table.sortable")) {
  [...table.tHead.rows[0].cells].forEach((cell, column) => {
    const button = document.createElement("button");
    button.append(...cell.childNodes);
    button.addEventListener("click", () => sort(table, column));
    cell.append(button);
  });
  if (table.dataset.filter) addFilter(table);
}
