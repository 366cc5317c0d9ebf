// Shared by the pages: elements, numbers and colours. Texts and labels only ever become text nodes, never markup.
"use strict";
const byId = (id) => document.getElementById(id);

// Elements: el("p", {class: "soft"}, "text", child, …)
function el(tag, attributes, ...children) {
  const svg = ["svg", "g", "line", "circle", "text", "polyline", "title"].includes(tag) && attributes?.ns;
  const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name === "ns" || value === null || value === undefined || value === false) continue;
    if (name.startsWith("--")) node.style.setProperty(name, value);
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}
const draw = (tag, attributes, ...children) => el(tag, {...attributes, ns: true}, ...children);
// Hue of a label. labels: their number
const hueOf = (label, labels) => Math.round(((label * 360) / Math.max(1, labels) + 210) % 360);
function percent(p) {
  const value = 100 * p;
  if (value >= 99.95) return p === 1 ? "100" : ">99.9";
  if (value > 0 && value < 0.05) return "<0.1";
  return value >= 99 || value < 1 ? value.toFixed(1) : value.toFixed(0);
}
const share = (value) => `${(100 * value).toFixed(1)} %`;
const plural = (number, one, many) => `${number.toLocaleString("en")} ${number === 1 ? one : many}`;
