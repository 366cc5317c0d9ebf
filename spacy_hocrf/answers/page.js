// Draws the page from its data. Texts and labels only ever become text nodes, never markup.
//
// data: {lang, labels, least, gold, texts, bins, scores, curve}. A text is {words, spans, perhaps, gold, others,
// heat, sure}, with its id if it has one, accepted if the model has a threshold, doubt and number if its annotation
// is doubted; a span [first token, one past the last, label, probability, verdict, reasons]. The verdict of a
// predicted span is RIGHT, WRONG or UNKNOWN; that of an annotated one RIGHT or MISSED.
(() => {
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const [UNKNOWN, WRONG, RIGHT, MISSED] = [-1, 0, 1, 2];
for (const text of data.texts) text.missed = (text.gold ?? []).filter((span) => span[4] === MISSED);
const AT_ONCE = 200, AROUND = 3, MOST_COLUMNS = 24;

// Attributes of a text's words: their own language and direction
const theirs = {lang: data.lang, dir: "auto"};
const quote = (words) => ["“", el("bdi", {lang: data.lang}, words), "”"];

const hue = (label) => hueOf(label, data.labels.length);
const nameOf = (label) => (label < 0 || label >= data.labels.length ? "nothing" : data.labels[label]);
const named = (label) => el("span", {dir: "auto"}, nameOf(label)); // inside of a sentence of any direction
const signed = (value) => (value < 0 ? "−" : "+") + Math.abs(value).toFixed(2);
// A word; invisible characters as their code points
const visible = (word) => (/^[\p{C}\p{M}]+$/u.test(word)
  ? Array.from(word, (sign) => `U+${sign.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`).join(" ") : word || "␣");
const said = (text, start, end) => text.words.slice(start, end).join("").trim();
const errorsOf = (text) => text.spans.filter((span) => span[4] === WRONG).length + text.missed.length;

// One text

function titleOf(text, number) {
  if (text.id !== undefined) return `Text ${text.id}`;
  if (text.number !== undefined) return `Text ${text.number} of the file`;
  return data.texts.length > 1 ? `Text ${number + 1}` : "The text";
}

function article(text, number) {
  const id = `text${number}`, errors = errorsOf(text), panel = el("div", {id: `${id}-details`});
  const node = el("article", {id, "aria-labelledby": `${id}-head`},
    el("div", {class: "head"},
      el("h2", {id: `${id}-head`}, titleOf(text, number)),
      text.doubt === undefined ? null : el("span", {class: "soft"}, `doubt ${text.doubt}`),
      el("span", {class: "soft"}, `${percent(text.sure)} % sure that the whole text is right`),
      text.accepted === undefined ? null : el("span", {class: "soft"}, text.accepted ? "accepted unread" : "to be read"),
      errors ? el("span", {class: "soft wrong-text"}, `✗ ${plural(errors, "error", "errors")}`)
        : text.gold && el("span", {class: "soft right-text"}, "✓ as annotated")));
  const found = [...text.spans, ...text.perhaps].sort((a, b) => a[0] - b[0]);
  node.append(line(text, found, errors ? "model" : null, panel));
  if (errors) node.append(line(text, text.gold, "annotated", panel));
  node.append(panel);
  return node;
}

function line(text, spans, who, panel) {
  const children = [];
  let done = 0;
  for (const span of spans) {
    const [start, end] = span;
    if (start < done) continue; // show the first of overlapping spans
    const words = text.words.slice(start, end).join("");
    children.push(text.words.slice(done, start).join(""), mark(text, span, panel, who === "annotated"),
      words.slice(words.trimEnd().length));
    done = end;
  }
  children.push(text.words.slice(done).join(""));
  return who ? el("p", {class: "line two"}, el("span", {class: "who"}, who), el("span", theirs, children))
    : el("p", {class: "line", ...theirs}, children);
}

function mark(text, span, panel, annotated) {
  const [start, end, label, p, verdict, why] = span;
  const [fault, told] = {[WRONG]: ["wrong", ", not annotated"], [MISSED]: ["missed", ", missed"]}[verdict] ?? ["", ""];
  const perhaps = text.perhaps.includes(span);
  const open = () => toggle(node, text, span, panel);
  const press = (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    open();
  };
  const button = {role: "button", tabindex: 0, "aria-expanded": "false", "aria-controls": panel.id,
    onclick: open, onkeydown: press};
  const node = el("span", {class: `span ${fault} ${perhaps ? "perhaps" : ""} ${why ? "" : "plain"}`, "--hue": hue(label),
    "--p": annotated ? 0.35 : p, ...(why ? button : {})},
  said(text, start, end),
  el("small", {lang: "en", dir: "auto"}, nameOf(label) + (perhaps ? "?" : ""), annotated ? null : ` ${percent(p)}`,
    el("span", {class: "hidden"}, `${annotated ? "" : " percent"}${told}`)));
  return node;
}

function toggle(node, text, span, panel) {
  const opened = node.getAttribute("aria-expanded") === "true";
  const others = panel.parentElement.querySelectorAll('[aria-expanded="true"]');
  for (const other of others) other.setAttribute("aria-expanded", "false");
  panel.replaceChildren();
  if (opened) return;
  node.setAttribute("aria-expanded", "true");
  const close = () => {
    toggle(node, text, span, panel);
    node.focus();
  };
  const [start, end, label, p, verdict] = span;
  const perhaps = text.perhaps.includes(span);
  const annotated = {[WRONG]: " It is not annotated.", [RIGHT]: " It is annotated, too.",
    [MISSED]: " It is annotated."}[verdict] ?? "";
  panel.append(el("div", {
    class: "details", role: "region", "aria-label": `About ${said(text, start, end)}`,
    onkeydown: (event) => event.key === "Escape" && close(),
  },
  el("div", {class: "wide top"},
    el("div", {"aria-live": "polite"}, el("strong", null, quote(said(text, start, end))),
      perhaps ? " is perhaps " : " is ", named(label), `: ${percent(p)} % sure`,
      perhaps ? ", too little to say so." : `.${annotated}`),
    el("button", {type: "button", onclick: close}, "Close")),
  el("div", null, alternatives(text, span)),
  el("div", null, reasons(text, span)),
  el("div", {class: "wide"}, heatMap(text, span))));
}

// Alternatives for a span

function alternatives(text, span) {
  const [start, end] = span;
  const all = new Map();
  for (const each of [...text.spans, ...text.others, ...text.missed]) {
    if (each[0] < end && each[1] > start) all.set(each.slice(0, 3).join(), each);
  }
  const rows = [...all.values()].sort((a, b) => b[3] - a[3]);
  return [
    el("h3", null, "What it could be"),
    el("table", {class: "bars"}, el("tbody", null, rows.map((each) => el("tr", null,
      el("td", {class: "number"}, `${percent(each[3])} %`),
      el("td", {class: "bar", "aria-hidden": "true"},
        el("span", {class: "label", style: `width:${100 * each[3]}%`, "--hue": hue(each[2])})),
      el("td", null, el("strong", null, nameOf(each[2])), " ",
        el("bdi", {lang: data.lang}, said(text, each[0], each[1]))))))),
    el("p", {class: "soft"}, `Alternatives below ${percent(data.least)} % are left out.`),
  ];
}

// Why

function reasons(text, span) {
  const label = span[2], why = span[5];
  const heading = (...words) => el("h3", null, words);
  if (why.refused) {
    const told = {set: "It was set before the model was run.",
      long: "In a text this long, only the least sure spans have reasons.", impossible:
      "The model cannot have this: it is longer than any in training, or has an unknown label."};
    return [heading("Why"), el("p", null, told[why.refused])];
  }
  const other = why.instead.flatMap(([start, end, each], i) =>
    [i ? ", " : "", named(each), " ", ...quote(said(text, start, end))]);
  const words = [...why.words.map(([t, value]) => [wordAt(text, t), value]),
    ["all other words", why.others], ["label sequences, lengths, positions", why.beside]];
  const seen = why.top.map(([observed, value]) => [el("code", theirs, observed), value]);
  return [
    heading("Why ", named(label), ", rather than ", ...(other.length ? other : ["nothing"]), "?"),
    el("p", {class: "soft"}, "Words that speak for it (+) or against it (−):"),
    contributions([...words.filter(([, value]) => Math.abs(value) >= 0.005), total(why.odds)]),
    el("details", null, el("summary", null, "Observations"),
      contributions([...seen, ...(why.more ? [[`${why.more} more observations`, why.rest]] : []),
        total(why.odds)])),
  ];
}

// A word; if the text has it several times, with the word before it
function wordAt(text, t) {
  const word = text.words[t].trim(), again = text.words.filter((other) => other.trim() === word).length > 1;
  const before = again && t > 0 ? `${visible(text.words[t - 1].trim())} ` : null;
  return el("bdi", {lang: data.lang}, before ? el("span", {class: "soft"}, before) : null,
    el("strong", null, visible(word)));
}

const total = (value) => [odds(value), value, "sum"];

function contributions(rows) {
  const most = Math.max(...rows.map(([, value, sum]) => (sum ? 0 : Math.abs(value))), 1e-9);
  return el("table", {class: "bars"}, el("tbody", null, rows.map(([what, value, sum]) =>
    el("tr", {class: sum},
      el("td", {class: "number"}, signed(value)),
      el("td", {class: "bar", "aria-hidden": "true"}, sum ? null
        : el("span", {class: value < 0 ? "against" : "", style: `width:${(100 * Math.abs(value)) / most}%`})),
      el("td", null, what ?? "")))));
}

function odds(value) {
  const times = Math.exp(Math.abs(value));
  const shown = times >= 1e6 ? "more than a million" : times >= 10 ? Math.round(times).toLocaleString("en")
    : times.toFixed(1);
  return `together: ${shown} times ${value < 0 ? "less" : "more"} probable than that`;
}

// Token × label

function heatMap(text, span) {
  let first = Math.max(0, span[0] - AROUND), last = Math.min(text.words.length, span[1] + AROUND);
  if (last - first > MOST_COLUMNS) last = first + MOST_COLUMNS;
  const at = new Map(), labels = new Set();
  for (let t = first; t < last; t++) {
    for (let i = 0; i < text.heat[t].length; i += 2) {
      at.set(`${t},${text.heat[t][i]}`, text.heat[t][i + 1] / 1000);
      labels.add(text.heat[t][i]);
    }
  }
  const rows = [...labels].sort((a, b) => a - b);
  const tokens = [...Array(last - first).keys()].map((i) => first + i);
  const inside = (t) => t >= span[0] && t < span[1];
  return [
    el("h3", null, "How sure the model is of each word's label, in percent"),
    el("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": "Words and labels"},
      el("table", {class: "heat"},
        el("thead", null, el("tr", null, el("td"), tokens.map((t) =>
          el("th", {scope: "col", class: inside(t) ? "inside" : "", ...theirs}, visible(text.words[t].trim()))))),
        el("tbody", null, rows.map((label) => el("tr", null,
          el("th", {scope: "row"}, label < 0 ? "nothing" : nameOf(label)),
          tokens.map((t) => {
            const p = at.get(`${t},${label}`);
            return p === undefined ? el("td")
              : el("td", {class: "cell", "--hue": hue(label), "--p": label < 0 ? p / 4 : p},
                percent(p));
          })))))),
  ];
}
// Figures

function chart(title, x, y, marks) {
  const side = 260, left = 34, bottom = 34, top = 8;
  const px = (value) => left + ((side - left - 10) * (value - x.low)) / (x.high - x.low);
  const py = (value) => top + ((side - top - bottom) * (y.high - value)) / (y.high - y.low);
  const svg = draw("svg", {viewBox: `0 0 ${side} ${side}`, role: "img", "aria-label": title});
  for (const tick of y.ticks) {
    svg.append(draw("line", {class: "grid", x1: left, x2: side - 10, y1: py(tick), y2: py(tick)}));
    svg.append(draw("text", {x: left - 6, y: py(tick) + 4, "text-anchor": "end"}, `${Math.round(100 * tick)}`));
  }
  for (const tick of x.ticks) {
    svg.append(draw("text", {x: px(tick), y: side - bottom + 15, "text-anchor": "middle"}, x.name(tick)));
  }
  svg.append(draw("text", {x: (left + side) / 2, y: side - 4, "text-anchor": "middle"}, x.title));
  marks(svg, px, py);
  return svg;
}

function reliability(bins) {
  const axis = {low: 0, high: 1, ticks: [0, 0.2, 0.4, 0.6, 0.8, 1], title: "how sure the model was, %",
    name: (tick) => `${Math.round(100 * tick)}`};
  const most = Math.max(...bins.map((bin) => bin.spans));
  const described = bins.map((bin) =>
    `of ${bin.spans} at about ${percent(bin.mean)} %, ${percent(bin.right)} % were right`);
  const svg = chart(`Right spans by how sure the model was: ${described.join("; ")}`, axis, axis,
    (node, px, py) => {
      node.append(draw("line", {class: "ideal", x1: px(0), y1: py(0), x2: px(1), y2: py(1)}));
      bins.forEach((bin, i) => node.append(draw("circle", {
        class: "dot", cx: px(bin.mean), cy: py(bin.right), r: 2.5 + 9 * Math.sqrt(bin.spans / most)},
      draw("title", {}, described[i]))));
    });
  return el("figure", null,
    el("figcaption", null, "Are spans right as often as the model is sure? On the dashed line, yes."), svg);
}

function learningCurve(curve) {
  const values = curve.points.flatMap((point) => [point.low, point.high]);
  const low = Math.floor(20 * Math.min(...values)) / 20, high = Math.min(1, Math.ceil(20 * Math.max(...values)) / 20);
  const ticks = [...Array(Math.round(20 * (high - low)) + 1).keys()].map((i) => low + i / 20);
  const last = curve.points[curve.points.length - 1].texts;
  const x = {low: 0, high: 1.06 * last, ticks: [curve.now, last], title: "texts to learn from",
    name: (tick) => tick.toLocaleString("en")};
  const described = curve.points.map((point) => `${point.texts}: ${percent(point.f)}`);
  const svg = chart(`F1 by texts to learn from: ${described.join("; ")}`, x, {low, high, ticks},
    (node, px, py) => {
      for (const [from, to, kind] of [[0, curve.now, ""], [curve.now, last, "ahead"]]) {
        const points = curve.line.filter(([n]) => n >= from && n <= to);
        node.append(draw("polyline", {class: `path ${kind}`,
          points: points.map(([n, f]) => `${px(n)},${py(f)}`).join(" ")}));
      }
      curve.points.forEach((point, i) => node.append(
        draw("line", {class: "whisker", x1: px(point.texts), x2: px(point.texts), y1: py(point.low),
          y2: py(point.high)}),
        draw("circle", {class: "dot", cx: px(point.texts), cy: py(point.f), r: 4},
          draw("title", {}, described[i]))));
    });
  return el("figure", null, el("figcaption", null,
    "F1 by number of texts to learn from; dashed: expected with more texts."), svg);
}

function numbers() {
  const {texts} = data, spans = texts.reduce((sum, text) => sum + text.spans.length, 0);
  const rows = [[texts.length, texts.length === 1 ? "text" : "texts"],
    [spans, data.gold ? "spans found" : "spans found in them"]];
  if (data.gold) {
    const clean = texts.filter((text) => text.gold && !errorsOf(text)).length;
    const {f, precision, recall, annotated} = data.scores[0];
    rows.push([annotated, "spans annotated"]);
    rows.push([share(f), "F1"]);
    rows.push([share(precision), "of found spans are right"]);
    rows.push([share(recall), "of annotated spans are found"]);
    rows.push([clean, "texts without an error"]);
  }
  return el("dl", {class: "numbers"}, rows.map(([value, name]) => el("div", null,
    el("dt", null, name), el("dd", null, typeof value === "number" ? value.toLocaleString("en") : value))));
}

function labelTable() {
  const rows = data.scores.slice(1);
  const columns = data.gold ? ["label", "annotated", "found", "right", "F1"] : ["label", "found"];
  return el("details", {open: rows.length <= 14}, el("summary", null, "By label"),
    el("table", null, el("thead", null, el("tr", null, columns.map((name) => el("th", {scope: "col"}, name)))),
      el("tbody", null, rows.map((row, label) => el("tr", null,
        el("th", {scope: "row"}, el("span", {class: "swatch", "--hue": hue(label)}), nameOf(label)),
        (data.gold ? [row.annotated, row.found, row.right] : [row.found]).map((n) => el("td", null, n)),
        data.gold ? el("td", null, row.annotated + row.found ? (100 * row.f).toFixed(1) : "") : null)))));
}

function glance() {
  if (data.texts.length <= 1 || !data.scores.length) return;
  const figures = el("div", {class: "figures"});
  if (data.bins.length) figures.append(reliability(data.bins));
  if (data.curve) figures.append(learningCurve(data.curve));
  byId("glance").append(numbers(), labelTable(), figures);
}

// Which texts are shown

const doubted = data.texts.some((text) => text.doubt !== undefined);
const rank = {unsure: (text) => text.sure, sure: (text) => -text.sure, doubt: (text) => -text.doubt};
const chosen = {order: doubted ? "doubt" : "unsure", texts: "all", read: "all", label: "-1", words: ""};
let matching = [], drawn = 0;

// Accented letters may be one character or two; case is ignored
const searched = (words) => words.normalize("NFC").toLowerCase();

function matches(text) {
  const errors = errorsOf(text), label = Number(chosen.label);
  if (chosen.texts === "errors" && !errors) return false;
  if (chosen.read !== "all" && text.accepted !== (chosen.read === "accepted")) return false;
  if (chosen.texts === "right" && (errors || !text.gold)) return false;
  const concerned = [...text.spans, ...text.missed].filter((span) =>
    chosen.texts !== "errors" || span[4] !== RIGHT);
  if (label >= 0 && !concerned.some((span) => span[2] === label)) return false;
  return !chosen.words || searched(text.words.join("")).includes(searched(chosen.words));
}

function show() {
  matching = [...data.texts.keys()].filter((i) => matches(data.texts[i]));
  const by = rank[chosen.order];
  if (by) matching.sort((a, b) => by(data.texts[a]) - by(data.texts[b]));
  byId("texts").replaceChildren();
  drawn = 0;
  drawMore();
  byId("count").textContent = data.texts.length > 1
    ? `${matching.length.toLocaleString("en")} of ${plural(data.texts.length, "text", "texts")}` : "";
}

function drawMore() {
  const next = matching.slice(drawn, drawn + AT_ONCE);
  byId("texts").append(...next.map((i) => article(data.texts[i], i)));
  drawn += next.length;
  byId("more").hidden = drawn >= matching.length;
  byId("more").textContent = `Show ${Math.min(AT_ONCE, matching.length - drawn)} more`;
}

function select(title, name, options) {
  const change = (event) => {
    chosen[name] = event.target.value;
    show();
  };
  return el("label", null, title, el("select", {name, onchange: change},
    options.map(([value, text]) => el("option", {value, selected: value === chosen[name]}, text))));
}

function choices() {
  const form = byId("choices");
  if (data.texts.length <= 1) return;
  form.hidden = false;
  form.addEventListener("submit", (event) => event.preventDefault());
  const orders = [["unsure", "least sure first"], ["sure", "most sure first"], ["file", "as in the file"]];
  if (doubted) orders.unshift(["doubt", "most doubted annotation first"]);
  form.append(select("Order", "order", orders));
  if (data.gold) {
    form.append(select("Texts", "texts", [["all", "all"], ["errors", "with errors"], ["right", "without errors"]]));
  }
  if (data.texts.some((text) => text.accepted !== undefined)) {
    form.append(select("Reading", "read", [["all", "all"], ["accepted", "accepted unread"], ["other", "to be read"]]));
  }
  form.append(
    select("Label", "label", [["-1", "any"], ...data.labels.map((name, i) => [String(i), name])]),
    el("label", null, "Words", el("input", {type: "search", name: "words", oninput: (event) => {
      chosen.words = event.target.value.trim();
      show();
    }})));
}

byId("more").addEventListener("click", () => {
  const before = drawn;
  drawMore();
  byId("texts").children[before]?.querySelector('[role="button"]')?.focus();
});
glance();
choices();
show();
})();
