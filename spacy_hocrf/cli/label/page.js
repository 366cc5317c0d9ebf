// The annotation page: one text at a time, with the model's readings and the person's annotation.
//
// A view is {text, id, words, revision, state, why, spans, outside, unknown, readings, others}; spans are [first token,
// one past the last, label], those of a reading with their probability. `said` is the person's annotation: spans,
// stretches outside of spans, and unknown stretches. All readings that the server returns for it agree with it.
(() => {
const TEXT = byId("text"), POLL = 3000, SOON = 500; // milliseconds
const DRAFT = "hocrf-draft"; // session storage of this tab: annotation that is not accepted yet, for a reload
const token = location.hash.slice(1);
let labels = [], keys = [], number = 0; // of this window
let view = null, said = null, past = [], chosen = 0, busy = false, asked = 0;
let anchor = -1, focus = -1, ranged = false; // the words that are selected
const rtl = () => getComputedStyle(TEXT).direction === "rtl";
const hue = (label) => hueOf(label, labels.length);
const overlap = ([a, b], [c, d]) => a < d && c < b;
const words = (start, end) => view.words.slice(start, end).join("").trim();

// The server

async function ask(what, request = {}) {
  let response;
  try {
    response = await fetch(`api/${what}`,
      {method: "POST", headers: {"x-hocrf-token": token}, body: JSON.stringify(request)});
  } catch {
    throw new Error("The server does not answer. Your changes to this text are not saved: try again when it runs.");
  }
  const answer = await response.json().catch(() => ({error: `The server failed (${response.status}). Nothing was saved.`}));
  if (!response.ok) throw Object.assign(new Error(answer.error), {late: response.status === 409});
  return answer;
}

// One action at a time: keys pressed meanwhile are ignored
async function act(work) {
  if (busy) return;
  busy = true;
  TEXT.setAttribute("aria-busy", true);
  try {
    await work();
    byId("warning").hidden = true;
  } catch (error) {
    warn(error);
  }
  busy = false;
  TEXT.setAttribute("aria-busy", false);
  TEXT.focus({preventScroll: true});
}

function warn(error) {
  const late = error.late && (error.message.startsWith("[H546]")
    ? el("button", {type: "button", onclick: () => act(open)}, "Go on here")
    : el("button", {type: "button", onclick: () => act(() => go(view.text))}, "Show it"));
  byId("warning").replaceChildren(error.message, late || "");
  byId("warning").hidden = false;
}

const here = () => ({window: number, text: view.text, revision: view.revision});

async function open() {
  const answer = await ask("open");
  ({labels, window: number} = answer);
  keys = keysOf(labels);
  TEXT.lang = answer.lang;
  drawTools();
  const draft = JSON.parse(sessionStorage.getItem(DRAFT));
  show(answer);
  const again = draft && (await ask("show", {text: draft.text}).catch(() => null))?.view;
  if (!again || again.revision !== draft.revision || again.words.join("") !== draft.plain) return;
  show({view: again});
  past = [said];
  said = draft.said;
  await read();
}

const go = async (text) => show(await ask("show", {text}));

async function accept() {
  if (!view) return;
  const before = view, spans = shown().map((span) => span.slice(0, 3));
  show(await ask("decide", {...here(), spans, unknown: said.unknown}));
  tell(`Saved: text ${before.text + 1}, ${plural(spans.length, "span", "spans")}.`);
}

async function skip() {
  if (!view) return;
  const before = view;
  show(await ask("skip", here()));
  tell(`Left for later: text ${before.text + 1}.`);
}

async function undo() {
  if (past.length) {
    said = past.pop();
    await read();
    return;
  }
  const answer = await ask("undo", {window: number});
  if (answer.view) show(answer);
  tell(answer.view ? `Undone: text ${answer.view.text + 1} is open again.` : "There is nothing to undo.");
}

// The text that was decided before this one
async function back() {
  const {rows} = await ask("search");
  const decided = rows.filter((row) => row.state !== "open");
  const at = decided.findIndex((row) => row.text === view?.text);
  if (decided[at + 1]) await go(decided[at + 1].text);
}

async function exported() {
  tell("Writing…");
  tell((await ask("export")).told);
}

// The person's annotation

function show(answer) {
  view = answer.view;
  said = view && {spans: view.spans, outside: view.outside, unknown: view.unknown};
  past = [];
  chosen = 0;
  asked += 1;
  sessionStorage.removeItem(DRAFT);
  select(-1, -1);
  drawText();
  if (answer.progress) drawProgress(answer.progress);
  scrollTo(0, 0);
}

// Get readings that agree with it. Until they arrive, spans that contradict it are hidden.
async function read() {
  const now = ++asked, {text, revision} = view;
  chosen = 0;
  sessionStorage.setItem(DRAFT, JSON.stringify({text, revision, said, plain: view.words.join("")}));
  drawText();
  TEXT.setAttribute("aria-busy", true);
  try {
    const answer = await ask("read", {text: view.text, ...said});
    if (now === asked) Object.assign(view, answer);
  } finally {
    if (now === asked) TEXT.setAttribute("aria-busy", false);
  }
  drawText();
}

function shown() {
  const taken = [...said.spans, ...said.outside, ...said.unknown];
  const free = (view.readings[chosen]?.spans ?? []).filter((span) => !taken.some((each) => overlap(span, each)));
  return [...said.spans.map((span) => [...span, 1, true]), ...free].sort((a, b) => a[0] - b[0]);
}

// Annotate the selected words. what: a label's number, "outside" or "unknown"
function say(what) {
  const place = selected();
  if (!place || busy) return;
  const without = (stretches) => stretches.flatMap(([a, b]) =>
    (overlap([a, b], place) ? [[a, Math.min(b, place[0])], [Math.max(a, place[1]), b]] : [[a, b]])).filter(([a, b]) => a < b);
  past.push(said);
  said = {
    spans: said.spans.filter((span) => !overlap(span, place)),
    outside: without(said.outside),
    unknown: without(said.unknown),
  };
  if (typeof what === "string") said[what].push(place);
  else said.spans.push([...place, what]);
  const after = Math.min(place[1], view.words.length - 1);
  select(after, after);
  read().catch(warn);
}

function another(step) {
  const all = view?.readings.length ?? 0;
  if (all < 2) return;
  chosen = (chosen + step + all) % all;
  drawText();
}

// Selection

const spanAt = (t) => (t < 0 || !view ? undefined : shown().find(([a, b]) => a <= t && t < b));

// First selected word and one past the last; if a single word of a span is selected, those of the span
function selected() {
  if (focus < 0 || !view) return null;
  const span = ranged ? undefined : spanAt(focus);
  return span ? span.slice(0, 2) : [Math.min(anchor, focus), Math.max(anchor, focus) + 1];
}

function select(from, to, several = false) {
  [anchor, focus, ranged] = [from, to, several];
  drawSelection();
}

function move(step, several, far) {
  const last = view.words.length - 1, ends = (t) => t <= 0 || t >= last || /^\p{P}/u.test(view.words[t + (step > 0)]);
  let to = focus < 0 ? (step > 0 ? 0 : last) : Math.max(0, Math.min(last, focus + step));
  while (view.words[to + step] && ((far && !ends(to)) || !view.words[to].trim())) to += step;
  select(several && focus >= 0 ? anchor : to, to, several);
}

// Go to the next span
function jump(step) {
  const spans = step > 0 ? shown() : shown().reverse();
  const next = spans.find(([a, b]) => focus < 0 || (step > 0 ? a > focus : b <= focus)) ?? spans[0];
  if (next) select(next[0], next[0]);
}

// Use the browser's selection, made by mouse or finger. RETURNS: is anything selected?
function selectRange() {
  const range = getSelection().rangeCount && getSelection().getRangeAt(0);
  if (!range || range.collapsed || !TEXT.contains(range.commonAncestorContainer)) return false;
  const own = document.createRange();
  const inside = [...TEXT.querySelectorAll(".word")].filter((node) => {
    own.selectNodeContents(node);
    return own.compareBoundaryPoints(Range.START_TO_END, range) > 0 && own.compareBoundaryPoints(Range.END_TO_START, range) < 0;
  }).map((node) => Number(node.dataset.t));
  if (inside.length) select(inside[0], inside.at(-1), true);
  return inside.length > 0;
}

document.addEventListener("selectionchange", selectRange);
TEXT.addEventListener("click", (event) => {
  if (selectRange()) {
    getSelection().removeAllRanges(); // else the next press would drag it
    return;
  }
  const word = event.target.closest(".word") ?? event.target.closest(".span")?.querySelector(".word");
  if (word) select(event.shiftKey && focus >= 0 ? anchor : Number(word.dataset.t), Number(word.dataset.t), event.shiftKey);
});

// Keys

const ACTIONS = [ // name, key, key as shown, function, description
  ["Accept", "Enter", "Enter", () => act(accept), "accept the text as shown, and go to the next one"],
  ["Other reading", "Tab", "Tab", () => another(1), "show the next best reading that keeps your spans; with Shift the previous one"],
  ["Nothing", "Delete", "Del", () => say("outside"), "the selected words are outside of all spans"],
  ["Cannot tell", "?", "?", () => say("unknown"), "leave the selected words unknown"],
  ["Undo", "z", "Ctrl Z", () => act(undo), "undo your last change, or else your last decision"],
  ["Skip", "PageDown", "PgDn", () => act(skip), "leave the text for later"],
  ["Back", "PageUp", "PgUp", () => act(back), "go back to the previous text"],
  ["Export", "s", "Ctrl S", () => act(exported), "write the annotation and the model as files"],
];
const MORE = [
  [["←", "→"], "select a word; with Shift several, with Ctrl up to the next punctuation mark"],
  [["↓", "↑"], "go from span to span"],
  [["1", "…", "5"], "choose an alternative for the selected span"],
  [["/"], "search"],
  [["Esc"], "leave the text, so that Tab moves through the page"],
];

// A key for each label: a letter of its name, if one is left
function keysOf(names) {
  const left = new Set("abcdefghijklmnopqrstuvwxyz");
  return names.map((name) => {
    const key = [...name.toLowerCase()].find((letter) => left.has(letter)) ?? [...left][0] ?? "";
    left.delete(key);
    return key;
  });
}

// The pressed key; on keyboards for other scripts the Latin letter at its position, and "?" for their question marks
function keyOf({key, code}) {
  if (["؟", "？"].includes(key)) return "?";
  const other = /^Key[A-Z]$/.test(code) && /^(?!\p{ASCII})\P{Script=Latin}$/u.test(key);
  return other ? code[3].toLowerCase() : key;
}

document.addEventListener("keydown", (event) => {
  const {shiftKey, target} = event, key = keyOf(event);
  if (target !== TEXT && (target !== document.body || key === "Tab")) return;
  const control = event.ctrlKey || event.metaKey, far = control || event.altKey;
  const forward = rtl() ? "ArrowLeft" : "ArrowRight", backward = rtl() ? "ArrowRight" : "ArrowLeft";
  const letters = control || event.altKey ? [] : keys, action = ACTIONS.find((each) => each[1] === key);
  const does = {
    Escape: () => byId("actions").querySelector("button").focus(),
    "/": () => byId("words").focus(),
    Backspace: () => say("outside"),
    [forward]: () => move(1, shiftKey, far),
    [backward]: () => move(-1, shiftKey, far),
    ArrowDown: () => jump(1),
    ArrowUp: () => jump(-1),
    Home: () => select(shiftKey ? anchor : 0, 0, shiftKey),
    End: () => select(shiftKey ? anchor : view.words.length - 1, view.words.length - 1, shiftKey),
  }[key];
  let work = does;
  if (action && control === (key.length === 1 && key !== "?")) work = key === "Tab" ? () => another(shiftKey ? -1 : 1) : action[3];
  else if (control && key === "a") work = () => select(0, view.words.length - 1, true);
  else if (letters.includes(key)) work = () => say(letters.indexOf(key));
  else if (key >= "1" && key <= "5" && !control) work = () => take(alternatives()[key - 1]);
  if (!work || (!view && !action)) return;
  event.preventDefault();
  if (!event.repeat || !["Enter", "PageDown"].includes(key)) work(); // a key that is held down does not accept one text after another
});

// Alternatives for a span

function alternatives() {
  const place = selected(), span = spanAt(focus);
  const row = place && view.others.find(([a, b]) => a === place[0] && b === place[1]);
  return row ? row[2].filter(([label]) => label !== (span ? span[2] : -1)).slice(0, 5) : [];
}

const take = (other) => other && say(other[0] < 0 ? "outside" : other[0]);

// Drawing

const tell = (text) => (byId("saved").textContent = text);

function drawText() {
  byId("about").hidden = byId("labels").hidden = !view;
  if (!view) {
    byId("head").textContent = "All texts are annotated or left for later; search to find the latter.";
    TEXT.replaceChildren();
    return;
  }
  const reading = view.readings[chosen];
  const why = {annotated: "annotated already", skipped: "left for later"}[view.state]
    ?? {doubt: "chosen because the model is in doubt", random: "drawn at random"}[view.why];
  byId("head").textContent = [`Text ${view.text + 1}${view.id ? ` (${view.id})` : ""}`, why,
    reading && `${percent(reading.sure)} % sure that the whole text is right`,
    view.readings.length > 1 && chosen > 0 && `reading ${chosen + 1} of ${view.readings.length}`].filter(Boolean).join(" · ");
  const marks = [...shown().map((span) => [span[0], span[1], mark(span)]), ...said.unknown.map(([a, b]) => [a, b, nobodyKnows(a, b)])];
  let at = 0;
  TEXT.replaceChildren();
  for (const [start, end, node] of marks.sort((a, b) => a[0] - b[0])) {
    TEXT.append(...plain(at, start), node, /\s*$/.exec(view.words.slice(start, end).join(""))[0]);
    at = end;
  }
  TEXT.append(...plain(at, view.words.length));
  drawSelection();
}

// Nodes of words; with `cut`, the last one without its trailing white space
function plain(start, end, cut = false) {
  return view.words.slice(start, end).map((word, i) => el("span", {class: "word", "data-t": start + i},
    cut && start + i === end - 1 ? word.trimEnd() : word));
}

function mark([start, end, label, p, fixed]) {
  return el("span", {class: `span${fixed ? " fixed" : ""}`, "--hue": hue(label), "--p": p}, plain(start, end, true),
    el("small", {lang: "en", dir: "auto"}, labels[label], fixed ? " ✓" : ` ${percent(p)}`));
}

const nobodyKnows = (start, end) => el("span", {class: "unknown"}, plain(start, end, true), el("small", {lang: "en"}, " ?"));

function drawSelection() {
  const place = selected(), span = spanAt(focus), inside = span && place && overlap(span, place);
  for (const node of TEXT.querySelectorAll(".word")) {
    const t = Number(node.dataset.t);
    node.classList.toggle("selected", place !== null && t >= place[0] && t < place[1]);
    node.classList.toggle("cursor", t === focus);
  }
  for (const node of byId("labels").children) node.setAttribute("aria-pressed", Boolean(inside) && span[2] === Number(node.dataset.label));
  const about = byId("about");
  about.replaceChildren();
  if (!place) return;
  const name = inside ? labels[span[2]] : "no label";
  const sure = inside ? `, ${span[4] ? "set by you" : `${percent(span[3])} % sure`}` : "";
  about.append(el("span", null, el("bdi", {lang: TEXT.lang}, `“${shorten(words(...place))}”`), " ", el("bdi", null, name), sure));
  const others = alternatives();
  if (others.length) about.append(el("span", {class: "soft"}, "or"));
  about.append(...others.map((other, i) => el("button", {type: "button", onclick: () => take(other)},
    el("bdi", null, other[0] < 0 ? "nothing" : labels[other[0]]), ` ${percent(other[1])} %`, el("kbd", null, i + 1))));
  byId("spoken").textContent = `${words(...place)}: ${name}${sure}`;
}

const shorten = (text) => (text.length > 36 ? `${text.slice(0, 18)} … ${text.slice(-14)}` : text);

function drawTools() {
  byId("labels").replaceChildren(...labels.map((label, i) => el("button",
    {type: "button", "data-label": i, "--hue": hue(i), "aria-pressed": "false", onclick: () => {
      say(i);
      TEXT.focus({preventScroll: true});
    }},
    el("span", {class: "swatch", "--hue": hue(i)}), label, keys[i] ? el("kbd", null, keys[i]) : null)));
  byId("actions").replaceChildren(...ACTIONS.map(([name, , key, work], i) => el("button",
    {type: "button", class: i ? null : "main", onclick: () => {
      work();
      TEXT.focus({preventScroll: true});
    }}, name, el("kbd", null, key))));
  const rows = [...ACTIONS.map(([, , key, , what]) => [[key], what]), ...MORE];
  byId("keys").replaceChildren(...rows.flatMap(([shownKeys, what]) => [
    el("dt", null, shownKeys.map((key) => el("kbd", null, key))), el("dd", null, what)]));
}

function drawProgress(now) {
  const told = [`${now.annotated.toLocaleString("en")} of ${plural(now.texts, "text", "texts")} annotated`];
  if (now.f !== null) told.push(`F1 ${percent(now.f)} (${percent(now.low)} to ${percent(now.high)}) on ${now.tested} drawn at random`);
  if (now.accepted !== null) told.push(`${percent(now.accepted)} % acceptable unread`);
  if (now.more !== null) told.push(`with 50 more, about ${percent(now.more)}`);
  if (now.error) told.push(`the model cannot learn: ${now.error}`);
  byId("progress").replaceChildren(...told.map((part, i) => el("span", {class: i ? "more" : ""}, part)), curve(now.curve) ?? "");
  clearTimeout(drawProgress.timer);
  drawProgress.timer = setTimeout(() => ask("progress").then(drawProgress, () => {}), now.learning ? SOON : POLL);
  // show the first model's reading; later models do not change the text that somebody is reading
  if (view && !view.readings.length && now.version && !past.length && !busy) read().catch(warn);
}

// F1 by texts, as a line without axes
function curve(points) {
  if (points.length < 2) return null;
  const most = points.at(-1)[0], least = Math.min(...points.map(([, f]) => f)), height = Math.max(0.02, Math.max(...points.map(([, f]) => f)) - least);
  const path = points.map(([n, f]) => `${(88 * n) / most},${21 - (18 * (f - least)) / height}`).join(" ");
  const told = `F1 from ${percent(points[0][1])} after ${points[0][0]} texts to ${percent(points.at(-1)[1])} after ${most}`;
  return draw("svg", {viewBox: "0 0 90 24", role: "img", "aria-label": told}, draw("polyline", {class: "path", points: path}));
}

// Search

async function search() {
  const wanted = byId("words").value, {rows} = await ask("search", {words: wanted.trim()});
  // ignore a late answer, or one that arrives while the focus is in the list
  if (wanted !== byId("words").value || byId("rows").contains(document.activeElement)) return;
  const states = {annotated: "✓ ", skipped: "– ", open: ""};
  byId("rows").replaceChildren(...(rows.length ? rows.map((row) => el("li", null, el("button", {type: "button", onclick: () => {
    close();
    act(() => go(row.text));
  }}, states[row.state], `${row.text + 1} `, el("bdi", {lang: TEXT.lang}, row.begin)))) : [el("li", {class: "soft"}, "No text has these words.")]));
  byId("rows").hidden = false;
}

const close = () => (byId("rows").hidden = true);
byId("words").addEventListener("input", () => search().catch(warn));
byId("words").addEventListener("focus", () => search().catch(warn));
byId("words").parentElement.addEventListener("keydown", (event) => {
  const buttons = [...byId("rows").querySelectorAll("button")], at = buttons.indexOf(document.activeElement);
  const step = {ArrowDown: 1, ArrowUp: -1}[event.key];
  if (step) (buttons[at + step] ?? byId("words")).focus();
  else if (event.key === "Enter" && at < 0) buttons[0]?.click();
  else if (event.key === "Escape") {
    close();
    TEXT.focus();
  } else return;
  event.preventDefault();
});
document.addEventListener("click", (event) => event.target.closest("search") || close());

drawTools();
act(open);
})();
