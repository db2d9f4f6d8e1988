'use strict';
// The page of Nudge: one conversation, live. Everything that comes from elsewhere becomes text nodes, never markup.
// The parts, in order: small tools; Markdown; the log and its lines; cards; forms; the stream; the composer; the list.

const $ = id => document.getElementById(id);

// make builds an element: its properties, then its children, which are nodes or text.
function make(tag, properties = {}, ...children) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) e.addEventListener(name.slice(2), value);
    else if (name === 'class') e.className = value;
    else if (name === 'text') e.textContent = value;
    else e.setAttribute(name, value === true ? '' : value);
  }
  e.append(...children.filter(c => c !== null && c !== undefined));
  return e;
}

// newID names what a person does, so that doing it again after a lost answer does it once.
function newID() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, b => b.toString(16).padStart(2, '0')).join('');
}

const conversation = new URLSearchParams(location.search).get('c') || '';

const pause = ms => new Promise(done => { setTimeout(done, ms); });

// post does something on the server. While that is away or starting it tries again a few times, which the id in the
// body makes safe. Its error says what to do about it.
async function post(path, body, tries = 4) {
  let response = null;
  try {
    response = await fetch(path, {
      method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ conversation, ...body }),
    });
  } catch { /* told below, if it stays so */ }
  if (response && response.ok) return;
  if (tries > 1 && (!response || (response.status === 503 && response.headers.has('Retry-After')))) {
    await pause(1000);
    return post(path, body, tries - 1);
  }
  if (!response) throw new Error('Nudge can’t be reached just now.');
  let why = {};
  try { why = await response.json(); } catch { /* no reason was given */ }
  throw Object.assign(new Error(why.error || 'Nudge answered with status ' + response.status + '.'), { fields: why.fields || {} });
}

// readJSON gets what the server tells. Its error says what to do about it.
async function readJSON(path) {
  let response = null;
  try { response = await fetch(path); } catch { /* told below */ }
  if (response && response.ok) return response.json();
  let why = {};
  if (response) { try { why = await response.json(); } catch { /* no reason was given */ } }
  throw new Error(why.error || 'Nudge can’t be reached just now.');
}

const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' });
const dayClock = new Intl.DateTimeFormat(undefined, { weekday: 'short', day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' });

const dateClock = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' });

function dayText(text) {
  const at = new Date(text);
  return isNaN(at) ? '' : dateClock.format(at);
}

function timeText(text) {
  const at = new Date(text);
  if (isNaN(at)) return '';
  return at.toDateString() === new Date().toDateString() ? clock.format(at) : dayClock.format(at);
}

function agoText(text) {
  const at = new Date(text), minutes = Math.round((Date.now() - at) / 60000);
  if (isNaN(at)) return '';
  if (minutes < 1) return 'just now';
  if (minutes < 60) return minutes + ' min ago';
  return timeText(text);
}

// ---- Markdown ----

const mostDepth = 8; // of what stands inside of something

let anchors = true; // whether what is read just now may have links

function markdown(text, noLinks) {
  const root = make('div', { class: 'md' });
  anchors = !noLinks;
  blocks(text.replace(/\r\n?/g, '\n').split('\n'), root, 0);
  anchors = true;
  return root;
}

const fenceLine = /^( {0,3})(`{3,}|~{3,})\s*([\w+#.-]*)[^`]*$/;
const itemLine = /^( *)([-*+]|\d{1,9}[.)])( +)(.*)$/;
const ruleLine = /^ {0,3}([-*_])( *\1){2,} *$/;
const headingLine = /^ {0,3}(#{1,6}) +(.*?)(?: +#+)? *$/;

function blocks(lines, into, depth) {
  let i = 0;
  while (i < lines.length) {
    const line = lines[i];
    let found;
    if (line.trim() === '') i++;
    else if ((found = fenceLine.exec(line))) i = fence(lines, i, found, into);
    else if ((found = headingLine.exec(line))) {
      const h = make('h' + Math.min(6, found[1].length + 2));
      inline(found[2], h, depth);
      into.append(h);
      i++;
    } else if (ruleLine.test(line)) { into.append(make('hr')); i++; }
    else if (depth < mostDepth && /^ {0,3}>/.test(line)) {
      const inside = [];
      for (; i < lines.length && /^ {0,3}>/.test(lines[i]); i++) inside.push(lines[i].replace(/^ {0,3}> ?/, ''));
      const quote = make('blockquote');
      blocks(inside, quote, depth + 1);
      into.append(quote);
    } else if (depth < mostDepth && itemLine.test(line)) i = list(lines, i, into, depth);
    else if (isTable(lines, i)) i = table(lines, i, into, depth);
    else i = paragraph(lines, i, into, depth);
  }
}

function beginsBlock(line) {
  return line.trim() === '' || fenceLine.test(line) || headingLine.test(line) || ruleLine.test(line) || /^ {0,3}>/.test(line) || itemLine.test(line);
}

function paragraph(lines, i, into, depth) {
  const p = make('p');
  for (let first = true; i < lines.length && (first || !beginsBlock(lines[i])); i++, first = false) {
    if (!first) p.append(make('br'));
    inline(lines[i].trim(), p, depth);
  }
  into.append(p);
  return i;
}

function fence(lines, i, found, into) {
  const [, indent, ticks, language] = found;
  const inside = [];
  for (i++; i < lines.length; i++) {
    const line = lines[i].trim();
    if (line.startsWith(ticks) && line === ticks[0].repeat(line.length)) { i++; break; }
    inside.push(lines[i].startsWith(indent) ? lines[i].slice(indent.length) : lines[i]);
  }
  const text = inside.join('\n');
  const copy = make('button', { type: 'button', text: 'Copy', onclick: () => copyText(text, copy) });
  into.append(make('div', { class: 'fence' },
    make('div', { class: 'fence-head' }, make('span', { text: language || 'text' }), copy),
    make('pre', { tabindex: '0', 'aria-label': 'Code' }, make('code', { text }))));
  return i;
}

async function copyText(text, button) {
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = 'Copied';
  } catch {
    button.textContent = 'Can’t copy here';
  }
  setTimeout(() => { button.textContent = 'Copy'; }, 1500);
}

function list(lines, i, into, depth) {
  const first = itemLine.exec(lines[i]);
  const indent = first[1].length, numbered = /\d/.test(first[2]);
  const all = make(numbered ? 'ol' : 'ul');
  if (numbered && parseInt(first[2], 10) !== 1) all.setAttribute('start', parseInt(first[2], 10));
  while (i < lines.length) {
    const found = itemLine.exec(lines[i]);
    if (!found || found[1].length < indent || found[1].length > indent + 3 || /\d/.test(found[2]) !== numbered) break;
    const width = found[1].length + found[2].length + Math.min(found[3].length, 4);
    const inside = [found[4]];
    for (i++; i < lines.length; i++) {
      const blank = lines[i].trim() === '';
      const deep = lines[i].length - lines[i].trimStart().length;
      if (blank ? !(i + 1 < lines.length && lines[i + 1].trim() !== '' && lines[i + 1].length - lines[i + 1].trimStart().length >= width)
        : deep < Math.min(width, indent + 2)) break;
      inside.push(blank ? '' : lines[i].slice(Math.min(deep, width)));
    }
    all.append(item(inside, depth));
    if (i + 1 < lines.length && lines[i].trim() === '' && itemLine.test(lines[i + 1])) i++;
  }
  into.append(all);
  return i;
}

function item(inside, depth) {
  const li = make('li');
  const task = /^\[([ xX])\] +/.exec(inside[0]);
  if (task) {
    inside[0] = inside[0].slice(task[0].length);
    li.append(task[1] === ' ' ? '☐ ' : '☑ ');
  }
  if (task || /^[☐☑] /.test(inside[0])) li.className = 'task';
  if (inside.length === 1) inline(inside[0], li, depth + 1);
  else {
    const rest = inside.findIndex((l, n) => n > 0 && beginsBlock(l));
    const head = rest < 0 ? inside : inside.slice(0, rest);
    head.forEach((l, n) => { if (n > 0) li.append(make('br')); inline(l.trim(), li, depth + 1); });
    if (rest >= 0) blocks(inside.slice(rest), li, depth + 1);
  }
  return li;
}

function cells(line) {
  const row = [];
  let cell = '';
  const body = line.trim().replace(/^\|/, '').replace(/\|$/, '');
  for (let i = 0; i < body.length; i++) {
    if (body[i] === '\\' && body[i + 1] === '|') { cell += '|'; i++; } else if (body[i] === '|') { row.push(cell.trim()); cell = ''; } else cell += body[i];
  }
  row.push(cell.trim());
  return row;
}

function isTable(lines, i) {
  if (i + 1 >= lines.length || !lines[i].includes('|') || !lines[i + 1].includes('-')) return false;
  const rule = cells(lines[i + 1]);
  return rule.every(c => /^:?-+:?$/.test(c)) && rule.length === cells(lines[i]).length;
}

function table(lines, i, into, depth) {
  const head = cells(lines[i]);
  const row = (of, tag) => make('tr', {}, ...head.map((_, n) => {
    const cell = make(tag);
    inline(of[n] || '', cell, depth + 1);
    return cell;
  }));
  const body = make('tbody');
  const all = make('table', {}, make('thead', {}, row(head, 'th')), body);
  for (i += 2; i < lines.length && lines[i].includes('|') && lines[i].trim() !== ''; i++) body.append(row(cells(lines[i]), 'td'));
  into.append(make('div', { class: 'table', tabindex: '0' }, all));
  return i;
}

// link is an anchor for http and https, with the host in sight; anything else stays text, and where there are to be no links all does.
function link(label, address) {
  if (!anchors) return null;
  let url;
  try { url = new URL(address); } catch { return null; }
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return null;
  const a = make('a', { href: url.href, target: '_blank', rel: 'noopener noreferrer nofollow' }, label);
  const bare = label === address && address.toLowerCase().startsWith(url.protocol + '//' + url.host);
  return bare ? a : make('span', {}, a, make('span', { class: 'host', text: ' (' + url.host + ')' }));
}

// inline reads one line from left to right. What is opened and never closed is text.
function inline(text, into, depth) {
  let plain = '';
  const flush = () => { if (plain) into.append(plain); plain = ''; };
  const wrap = (tag, inside) => { flush(); const e = make(tag); inline(inside, e, depth + 1); into.append(e); };
  for (let i = 0; i < text.length;) {
    const c = text[i];
    let end;
    if (c === '\\' && i + 1 < text.length && '\\`*_{}[]()#+-.!|~<>'.includes(text[i + 1])) { plain += text[i + 1]; i += 2; continue; }
    if (c === '`') {
      const ticks = /^`+/.exec(text.slice(i, i + 16))[0];
      end = text.indexOf(ticks, i + ticks.length);
      if (end > 0) {
        flush();
        into.append(make('code', { text: text.slice(i + ticks.length, end).replace(/^ (.*[^ ].*) $/, '$1') }));
        i = end + ticks.length;
        continue;
      }
      plain += ticks; i += ticks.length; continue;
    }
    if (depth < mostDepth && (c === '*' || c === '_' || c === '~')) {
      const double = text[i + 1] === c;
      const open = double ? c + c : c;
      const after = text[i + open.length];
      const inWord = c === '_' && i > 0 && /[\p{L}\p{N}]/u.test(text[i - 1]);
      if ((c !== '~' || double) && after && after.trim() !== '' && after !== c && !inWord) {
        end = closing(text, open, i + open.length);
        if (end > 0) {
          wrap(c === '~' ? 'del' : double ? 'strong' : 'em', text.slice(i + open.length, end));
          i = end + open.length;
          continue;
        }
      }
      if (double) { plain += open; i += 2; continue; }
    }
    if (c === '[' || (c === '!' && text[i + 1] === '[')) {
      const found = bracket(text, c === '!' ? i + 1 : i);
      const built = found && link((c === '!' ? 'image: ' : '') + (found.label || found.address), found.address);
      if (built) { flush(); into.append(built); i = found.end; continue; }
    }
    if ((c === 'h' || c === '<') && (i === 0 || !/[\p{L}\p{N}]/u.test(text[i - 1]))) {
      const found = /^<?(https?:\/\/[^\s<>"`]{1,2000})>?/.exec(text.slice(i, i + 2010));
      if (found) {
        const address = found[1].replace(/[.,;:!?'*_)\]]+$/, m => (found[1].includes('(') && m[0] === ')' ? ')' : ''));
        const built = link(address, address);
        if (built) { flush(); into.append(built); i += c === '<' && text[i + found[0].length - 1] === '>' ? found[0].length : address.length + (c === '<' ? 1 : 0); continue; }
      }
    }
    plain += c;
    i++;
  }
  flush();
}

const mostMarked = 2000; // characters between two marks, so that a text full of marks takes no longer than others

// closing finds where an emphasis ends: after no space, and for _ not inside of a word.
function closing(text, mark, from) {
  for (let at = text.indexOf(mark, from); at > 0 && at - from < mostMarked; at = text.indexOf(mark, at + 1)) {
    if (at === from || text[at - 1].trim() === '' || text[at - 1] === '\\') continue;
    if (mark.length === 1 && (text[at + 1] === mark || text[at - 1] === mark)) continue;
    if (mark[0] === '_' && /[\p{L}\p{N}]/u.test(text[at + mark.length] || ' ')) continue;
    return at;
  }
  return -1;
}

// bracket reads [label](address) at a place.
function bracket(text, from) {
  const near = text.slice(from, from + mostMarked).indexOf('](');
  if (near < 0) return null;
  const middle = from + near;
  let depth = 1, end = middle + 2;
  for (; end < text.length && end - middle < 2100; end++) {
    if (text[end] === '(') depth++;
    else if (text[end] === ')' && --depth === 0) break;
  }
  if (text[end] !== ')') return null;
  const address = text.slice(middle + 2, end).trim().replace(/\s+["'(].*$/, '');
  return { label: text.slice(from + 1, middle), address, end: end + 1 };
}

// ---- the log ----

// state is what the page knows of the conversation.
const state = { session: '', number: 1, working: false, waiting: false, turn: '', parcels: new Set(), said: new Map(), receipts: new Map(), cards: new Map(), pings: new Map(), plans: new Map(), steps: null, unseen: 0 };

const log = $('log'), scroll = $('scroll'), words = $('words');

function atEnd() { return scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < 120; }

function toEnd() {
  scroll.scrollTop = scroll.scrollHeight;
  $('jump').hidden = true;
}

// add puts something at the end and keeps the end in sight, unless the person is reading further up.
function add(node, own = false) {
  const follow = own || atEnd();
  log.append(node);
  if (!node.classList.contains('steps')) state.steps = null;
  // The examples stay while there are only answers to commands.
  if (!node.classList.contains('notice')) $('empty').hidden = true;
  if (follow) toEnd(); else $('jump').hidden = false;
}

function clearLog() {
  log.replaceChildren();
  for (const part of [state.parcels, state.said, state.receipts, state.cards, state.pings, state.plans]) part.clear();
  state.steps = null;
}

// show shows one line. A line that is known already is not shown twice.
function show(line, live) {
  if (line.parcel) {
    if (state.parcels.has(line.parcel)) return;
    state.parcels.add(line.parcel);
  }
  const elsewhere = line.session && state.session && line.session !== state.session;
  if (elsewhere && ['said', 'progress', 'steer', 'waiting', 'settled'].includes(line.kind)) return;
  const from = elsewhere ? make('span', { class: 'elsewhere', text: placeOf(line.session) }) : null;
  switch (line.kind) {
    case 'said': said(line, live); break;
    case 'progress': progress(line); break;
    case 'final': final(line, from); break;
    case 'notify': ping(line, live); break;
    case 'notice': (line.choices ? card : notice)(line, from, live); break;
    case 'error': fault(line, from, live); break;
    case 'approval': case 'ask': card(line, from, live); break;
    case 'decided': (state.pings.has(line.id) ? judged : decided)(line); break;
    case 'steer': receipt(line.id, line.state, line.step); break;
    case 'waiting': if (live) { working(false, true); loadSessions(); } break;
    case 'settled': settled(line, live); break;
    case 'reload': if (live) restart(); break;
  }
}

// placeOf says in which other session something was said.
function placeOf(session) {
  const [base, number] = session.split('~');
  return base === state.session.split('~')[0] ? 'in conversation ' + (number || 1) : 'in ' + session;
}

function said(line, live) {
  if (line.id && state.said.has(line.id)) {
    const known = state.said.get(line.id);
    known.sending = false;
    if (known.note.textContent === 'sending') known.note.textContent = '';
    if (live && !isCommand(line.text)) working(true);
    return;
  }
  const entry = saidNode(line.text);
  if (line.id) state.said.set(line.id, entry);
  add(entry.node, line.own);
  const known = state.receipts.get(line.id);
  if (known) receipt(line.id, known.state, known.step);
  else if (line.state) receipt(line.id, line.state, line.step);
  if (live && !isCommand(line.text)) working(true);
}

function saidNode(text) {
  const note = make('div', { class: 'receipt' });
  const node = make('article', { class: 'said', 'aria-label': 'You' }, make('div', { class: 'words', dir: 'auto', text }), note);
  return { node, note };
}

function isCommand(text) { return /^\s*(\/[a-z][a-z-]*(\s|$)|stop\s*$)/i.test(text); }

const receiptWords = { stored: () => 'noted', seen: step => 'seen at step ' + step, next_turn: () => 'taken up next' };

function receipt(id, what, step) {
  state.receipts.set(id, { state: what, step });
  const entry = state.said.get(id);
  if (!entry || !receiptWords[what]) return;
  const follow = atEnd();
  entry.note.textContent = receiptWords[what](step);
  entry.note.className = 'receipt ' + what;
  entry.open = what === 'stored';
  if (follow) toEnd();
  if (what === 'next_turn') working(true);
}

// progress adds to the steps of what is going on. A plan is one list that changes in place.
function progress(line) {
  const items = line.tool === 'plan' && line.text ? line.text.split('\n').filter(l => /^[☐☑] /.test(l)) : [];
  if (items.length) { plan(line.turn, items); return; }
  if (!line.text || line.tool === 'plan') return;
  if (!state.steps || state.steps.dataset.turn !== (line.turn || '')) {
    const steps = make('ul', { class: 'steps', 'aria-label': 'Steps' });
    steps.dataset.turn = line.turn || '';
    add(steps);
    state.steps = steps;
  }
  const newest = state.steps.lastElementChild;
  if (newest && newest.dataset.tool === line.tool && line.tool && newest.dataset.bare === 'yes') newest.remove();
  const bare = line.text === line.tool;
  const rest = line.tool && line.text.startsWith(line.tool + ' ') ? line.text.slice(line.tool.length + 1) : line.text;
  const li = make('li', {}, line.tool ? make('b', { text: line.tool }) : null, bare ? null : (line.tool ? ' ' : '') + rest);
  li.dataset.tool = line.tool || '';
  li.dataset.bare = bare ? 'yes' : 'no';
  const follow = atEnd();
  state.steps.append(li);
  if (follow) toEnd();
}

function plan(turn, items) {
  const done = items.filter(i => i[0] === '☑').length;
  const content = [make('h3', { text: 'Plan, ' + done + ' of ' + items.length + ' done' }),
    make('ul', {}, ...items.map(i => make('li', { class: i[0] === '☑' ? 'done' : null },
      make('span', { class: 'box', 'aria-hidden': 'true', text: i[0] }),
      make('span', {}, make('span', { class: 'hidden', text: i[0] === '☑' ? 'done: ' : 'to do: ' }), i.slice(2)))))];
  let box = state.plans.get(turn);
  if (box) { box.replaceChildren(...content); return; }
  box = make('section', { class: 'plan', 'aria-label': 'Plan' }, ...content);
  state.plans.set(turn, box);
  add(box);
}

function final(line, from) {
  const node = make('article', { class: 'final', 'aria-label': 'Nudge', dir: 'auto' }, from, markdown(line.text || '', line.no_links));
  node.dataset.turn = line.turn || '';
  add(node);
}

function ping(line, live) {
  if (line.id && state.pings.has(line.id)) return;
  const node = make('article', { class: 'ping' }, make('h3', {}, bell(), line.heartbeat ? 'Ping: ' + line.heartbeat : 'Held back until now'), markdown(line.text || '', line.no_links));
  if (line.id) {
    const entry = { line, node, foot: make('div', { class: 'foot' }), fault: make('div', { class: 'fault', role: 'alert' }) };
    state.pings.set(line.id, entry);
    node.append(entry.foot, entry.fault);
    feedbackFoot(entry);
  }
  add(node);
  if (live) unseen();
}

// feedbackFoot asks what the person makes of a ping.
function feedbackFoot(entry) {
  entry.foot.replaceChildren(make('div', { class: 'buttons' },
    button('Useful', '', () => judge(entry, { said: 'useful' })),
    entry.line.once ? null : button('Less of this', '', () => judge(entry, { said: 'less' })),
    button('Snooze', '', () => snoozeFoot(entry))));
}

const spans = [['1h', 'For an hour'], ['4h', 'For 4 hours'], ['tomorrow', 'Until tomorrow, 09:00']];

function snoozeFoot(entry) {
  const back = () => { feedbackFoot(entry); entry.foot.querySelector('button:last-child').focus(); };
  const menu = make('div', { class: 'buttons', role: 'group', 'aria-label': 'Snooze' },
    ...spans.map(([span, text]) => button(text, '', () => judge(entry, { said: 'snooze', span }))), button('Back', 'plain', back));
  onEscape(menu, back);
  entry.foot.replaceChildren(menu);
  menu.firstElementChild.focus();
}

// judge sends what the person makes of a ping. What that changes is told by the stream, in every tab.
async function judge(entry, feedback) {
  const controls = entry.foot.querySelectorAll('button');
  const enable = () => controls.forEach(c => { c.disabled = false; });
  entry.fault.textContent = '';
  entry.held = entry.node.contains(document.activeElement);
  controls.forEach(c => { c.disabled = true; });
  try {
    await post('/api/judge', { id: newID(), card: entry.line.id, ...feedback });
    setTimeout(enable, 1500); // a refusal comes as a line of its own
  } catch (err) {
    enable();
    entry.fault.textContent = err.message;
  }
}

// judged shows what the person said of a ping last, and what that changes.
function judged(line) {
  const entry = state.pings.get(line.id);
  if (!entry) return;
  const inside = entry.node.contains(document.activeElement) || (entry.held && document.activeElement === document.body);
  const at = line.at ? ' (' + timeText(line.at) + ')' : '';
  entry.fault.textContent = '';
  entry.foot.replaceChildren(make('p', { class: 'outcome', role: 'status', dir: 'auto', text: line.text + at }));
  if (inside) words.focus();
}

function bell() {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  for (const [name, value] of [['viewBox', '0 0 20 20'], ['width', '16'], ['height', '16'], ['aria-hidden', 'true']]) svg.setAttribute(name, value);
  const path = document.createElementNS('http://www.w3.org/2000/svg', 'path');
  for (const [name, value] of [['d', 'M4.5 14.500h11c-1.200-1.200-1.500-2.600-1.500-5a4 4 0 0 0-8 0c0 2.400-.3 3.800-1.500 5ZM8.500 17h3M10 3.200V5'], ['fill', 'none'], ['stroke', 'currentColor'], ['stroke-width', '1.600'], ['stroke-linecap', 'round'], ['stroke-linejoin', 'round']]) path.setAttribute(name, value);
  svg.append(path);
  return svg;
}

// notice and fault stand on the card that they are about, if it is here.
function notice(line, from, live) {
  const about = line.id && state.cards.get(line.id);
  if (about && live) { onCard(about, line.text, false); return; }
  if (line.text) add(make('div', { class: 'notice', dir: 'auto' }, from, line.text));
  if (live && !line.turn && !line.session) unseen();
}

function fault(line, from, live) {
  const about = line.id && state.cards.get(line.id);
  if (about && live) { onCard(about, line.text, true); return; }
  add(make('div', { class: 'fault', role: 'alert', dir: 'auto' }, from, line.text || 'Something went wrong.'));
}

function settled(line, live) {
  if (line.steps !== undefined && line.turn) {
    const nodes = log.querySelectorAll('.final');
    const node = nodes[nodes.length - 1];
    if (node && node.dataset.turn === line.turn && !node.querySelector('.meta')) {
      const parts = [line.steps + (line.steps === 1 ? ' step' : ' steps')];
      if (line.tool_calls) parts.push(line.tool_calls + (line.tool_calls === 1 ? ' tool call' : ' tool calls'));
      if (line.cost_usd) parts.push('$' + line.cost_usd.toFixed(4));
      node.append(make('div', { class: 'meta', text: parts.join(' · ') }));
    }
  }
  if (!live) return;
  // Words that came too late for this turn begin the next one at once.
  const more = [...state.said.values()].some(e => e.open);
  working(more);
  if (atEnd()) toEnd();
  loadSessions();
}

// working shows what is going on: something is being done, or it waits for a person, or neither.
function working(on, waits = false) {
  state.working = on;
  state.waiting = waits;
  const open = on || waits;
  const follow = atEnd();
  $('working').hidden = !on;
  $('stop').hidden = !open;
  words.placeholder = on ? 'Correct me while I work…' : waits ? 'Decide, or say more…' : 'Say something…';
  if (on && follow) toEnd();
  countCards();
}

function unseen() {
  if (document.visibilityState === 'hidden') { state.unseen++; title(); }
}

function title() {
  const waits = [...state.cards.values()].filter(c => !c.settled && c.line.kind !== 'notice').length;
  document.title = (state.unseen ? '(' + state.unseen + ') ' : waits ? '● ' : '') + 'Nudge';
}

// ---- cards ----

function card(line, from, live) {
  const known = state.cards.get(line.id);
  if (known) return;
  const entry = { line, settled: false, from };
  entry.fault = make('div', { class: 'fault', role: 'alert' });
  entry.node = make('section', { class: line.kind === 'notice' ? 'card offer' : 'card', 'aria-label': labelOf(line) });
  entry.node.dataset.card = line.id;
  state.cards.set(line.id, entry);
  entry.foot = make('div');
  const parts = { ask: questionParts, approval: approvalParts, notice: offerParts };
  entry.node.append(...parts[line.kind](entry), entry.foot, entry.fault);
  idleFoot(entry);
  add(entry.node);
  countCards();
  if (live) unseen();
}

function labelOf(line) {
  return { ask: 'Question', notice: 'Offer to go on' }[line.kind] || 'Approval of ' + line.tool;
}

// offerParts is the line with which a limit ended a turn.
function offerParts({ line, from }) { return [make('p', { class: 'text', dir: 'auto' }, from, line.text)]; }

function approvalParts({ line, from }) {
  return [
    line.asks ? make('h3', {}, line.asks, from) : make('h3', {}, 'May I run ', make('code', { text: line.tool }), '?', from),
    line.why ? make('p', { class: 'text why', text: line.why }) : null,
    make('pre', { tabindex: '0', 'aria-label': 'Arguments', text: line.shown || JSON.stringify(line.arguments, null, 2) }),
    line.text ? make('p', { class: 'text', text: line.text }) : null,
    make('p', { class: 'until', text: untilText(line) }),
  ].filter(Boolean);
}

function questionParts({ line, from }) {
  return [
    make('h3', { dir: 'auto' }, line.text || 'A question', from),
    line.deadline ? make('p', { class: 'until', text: 'Open until ' + timeText(line.deadline) }) : null,
  ].filter(Boolean);
}

function untilText(line) {
  const who = (line.may_decide || []).map(p => (p === 'web:me' ? 'you' : p)).join(', ') || 'you';
  return who.charAt(0).toUpperCase() + who.slice(1) + ' may decide' + (line.expires ? ' until ' + timeText(line.expires) + '; after that it counts as denied' : '');
}

function button(text, kind, onclick) { return make('button', { type: 'button', class: kind, text, onclick }); }

// idleFoot is the foot of a card that nobody is busy with.
function idleFoot(entry) {
  const { line } = entry;
  if (line.kind === 'ask') { questionFoot(entry); return; }
  if (line.kind === 'notice') {
    entry.foot.replaceChildren(make('div', { class: 'buttons' }, ...line.choices.map((choice, n) => button(choice, n ? '' : 'primary', () => decide(entry, { verdict: n ? 'deny' : 'approve' })))));
    return;
  }
  const [approve, deny] = line.labels || ['Approve', 'Deny'];
  entry.foot.replaceChildren(make('div', { class: 'buttons' },
    button(approve, 'primary', () => decide(entry, { verdict: 'approve' })),
    button(deny, 'danger', () => (line.asks ? decide(entry, { verdict: 'deny', text: '' }) : denyForm(entry))),
    line.parked ? null : button('Edit', '', () => editForm(entry)),
    line.always ? button('Always allow this…', '', () => alwaysForm(entry)) : null));
  if (line.together) {
    entry.foot.append(make('pre', { class: 'together', tabindex: '0', 'aria-label': 'All of these', text: line.together }),
      make('div', { class: 'buttons' }, ...line.together_labels.map((label, n) => button(label, '', () => decide(entry, { verdict: n ? 'deny' : 'approve', batch: true })))));
  }
}

function questionFoot(entry) {
  const { line } = entry;
  const answer = text => decide(entry, { verdict: 'answer', text });
  const choices = (line.choices || []).map((choice, n) => button((line.labels || line.choices)[n], '', () => answer(choice)));
  const field = make('input', { type: 'text', id: 'own-' + line.id, autocomplete: 'off' });
  const own = make('form', { class: 'form ask-own', onsubmit: e => { e.preventDefault(); if (field.value.trim()) answer(field.value); else field.focus(); } },
    make('div', {}, make('label', { for: 'own-' + line.id, text: choices.length ? 'Or in your own words' : 'Your answer' }), field),
    make('div', { class: 'buttons' }, make('button', { type: 'submit', class: choices.length ? '' : 'primary', text: 'Answer' })));
  entry.foot.replaceChildren(...(choices.length ? [make('div', { class: 'buttons' }, ...choices)] : []), own);
}

// decide sends a decision. What comes of it is told by the stream, in every tab.
async function decide(entry, decision, report) {
  const tell = report || (text => onCard(entry, text, true));
  const controls = entry.foot.querySelectorAll('button, input, textarea');
  entry.fault.textContent = '';
  entry.held = entry.node.contains(document.activeElement); // what is disabled loses the focus
  controls.forEach(c => { c.disabled = true; });
  const body = { id: newID(), card: entry.line.id, ...decision };
  try {
    await post('/api/decide', body);
    // A refusal comes as a line of its own; the card must then be of use again.
    setTimeout(() => { if (!entry.settled) controls.forEach(c => { c.disabled = false; }); }, 1500);
  } catch (err) {
    controls.forEach(c => { c.disabled = false; });
    if (entry.held) controls[0].focus();
    tell(err.message, err.fields);
  }
}

function onCard(entry, text, bad) {
  entry.fault.textContent = text;
  entry.fault.classList.toggle('calm', !bad);
  entry.fault.scrollIntoView({ block: 'nearest' });
  if (entry.settled) return;
  const controls = entry.foot.querySelectorAll('button, input, textarea');
  controls.forEach(c => { c.disabled = false; });
  if (entry.held && document.activeElement === document.body && controls.length) controls[0].focus();
}

const outcomes = {
  approve: ['Approved', 'good'], always: ['Approved, and always allowed', 'good'], edit: ['Approved with changes', 'good'], deny: ['Denied', 'bad'], answer: ['Answered', 'good'],
  expire: ['Expired: nobody decided in time, which counts as denied', ''], withdrawn: ['Withdrawn', ''],
};

// of an offer to go on, or to run something again
const offered = { approve: ['Goes on', 'good'], deny: ['Left as it is', ''], expire: ['No longer open', ''], withdrawn: ['Overtaken by what was said next', ''] };

// of something to be kept
const kept = { approve: ['Saved', 'good'], edit: ['Saved with changes', 'good'], deny: ['Cancelled', 'bad'] };

function decided(line) {
  const entry = state.cards.get(line.id);
  if (!entry || entry.settled) return;
  entry.settled = true;
  const inside = entry.node.contains(document.activeElement) || (entry.held && document.activeElement === document.body);
  const offer = entry.line.kind === 'notice';
  const [word, kind] = (offer && offered[line.decision]) || (entry.line.asks && kept[line.decision]) || outcomes[line.decision] || [line.decision, ''];
  const byNobody = line.decision === 'expire' || line.decision === 'withdrawn';
  const by = line.by && !byNobody ? ' by ' + (line.by === 'web:me' ? 'you' : line.by) : '';
  const at = line.at ? ', ' + timeText(line.at) : '';
  const open = line.rule && line.open ? ', with ' + line.open.map(o => 'any ' + o.name + ' ' + o.within).join('; ') : '';
  const rule = line.rule ? open + ' until ' + dayText(line.always) + ' (rule ' + line.rule + ')' : '';
  const why = line.text ? ': ' + line.text.replace(/^not run: /, '') : '';
  entry.node.classList.add('settled');
  entry.fault.textContent = '';
  entry.foot.replaceChildren(make('p', { class: 'outcome ' + kind, role: 'status', dir: 'auto', text: word + by + at + rule + why }));
  entry.node.querySelectorAll('.until').forEach(e => e.remove());
  if (entry.line.kind === 'approval') {
    entry.node.querySelector('h3').replaceChildren(make('code', { text: entry.line.tool }));
  }
  if (line.decision === 'edit' && line.told) entry.foot.append(make('pre', { 'aria-label': 'What was changed', text: line.told }));
  if (inside) words.focus();
  if (line.decision !== 'withdrawn' && line.decision !== 'expire' && (state.waiting || (offer && line.decision === 'approve'))) working(true);
  countCards();
}

function countCards() {
  const open = [...state.cards.values()].filter(c => !c.settled && !(c.line.kind === 'notice' && c.line.choices.length === 1));
  const pill = $('waiting');
  pill.hidden = open.length === 0;
  pill.textContent = open.length === 1 ? '1 waits for you' : open.length + ' wait for you';
  title();
}

$('waiting').addEventListener('click', () => {
  const first = [...state.cards.values()].find(c => !c.settled && c.line.kind !== 'notice');
  if (!first) return;
  first.node.scrollIntoView({ block: 'center' });
  const target = first.foot.querySelector('button, input');
  if (target) target.focus();
});

// ---- forms on cards ----

function onEscape(form, back) {
  form.addEventListener('keydown', e => {
    if (e.key !== 'Escape') return;
    e.stopPropagation();
    e.preventDefault();
    back();
  });
}

function backTo(entry, label) {
  idleFoot(entry);
  const target = [...entry.foot.querySelectorAll('button')].find(b => b.textContent === label);
  if (target) target.focus();
}

function denyForm(entry) {
  const id = 'why-' + entry.line.id;
  const field = make('input', { type: 'text', id, autocomplete: 'off', placeholder: 'for example: keep that file' });
  const form = make('form', { class: 'form', onsubmit: e => { e.preventDefault(); decide(entry, { verdict: 'deny', text: field.value.trim() }); } },
    make('div', {}, make('label', { for: id, text: 'Why not? Nudge reads this. You may leave it empty.' }), field),
    make('div', { class: 'buttons' }, make('button', { type: 'submit', class: 'danger', text: 'Deny it' }), button('Back', '', () => backTo(entry, 'Deny'))));
  onEscape(form, () => backTo(entry, 'Deny'));
  entry.foot.replaceChildren(form);
  field.focus();
  entry.node.scrollIntoView({ block: 'nearest' });
}

// alwaysForm shows the rule that would be saved, beside the call that stands on the card.
function alwaysForm(entry) {
  const { line } = entry;
  const boxes = (line.open || []).map((o, n) => ({ name: o.name, words: 'any ' + o.name + ' ' + o.within, box: make('input', { type: 'checkbox', id: 'open-' + line.id + '-' + n }) }));
  const open = () => boxes.filter(b => b.box.checked).map(b => b.name);
  const means = make('p', { class: 'text', role: 'status' });
  const tell = () => { means.textContent = (open().length ? line.open_means : line.always_means) + dayText(line.always) + '. /approvals lists this and ends it.'; };
  boxes.forEach(b => b.box.addEventListener('change', tell));
  tell();
  const yes = button('Always allow', 'primary', () => decide(entry, { verdict: 'always', open: open() }));
  const form = make('div', { class: 'form', role: 'group', 'aria-label': 'Always allow this' },
    boxes.length ? make('fieldset', {}, make('legend', { class: 'label', text: 'Leave open' }),
      ...boxes.map(b => make('label', { class: 'check', for: b.box.id }, b.box, make('code', { text: b.words })))) : null,
    means,
    make('div', { class: 'buttons' }, yes, button('Back', '', () => backTo(entry, 'Always allow this…'))));
  onEscape(form, () => backTo(entry, 'Always allow this…'));
  entry.foot.replaceChildren(form);
  yes.focus();
  entry.node.scrollIntoView({ block: 'nearest' });
}

// isSimple is true for arguments that fields can hold without loss.
function isSimple(args) {
  const values = Object.values(args);
  return values.length > 0 && values.length <= 12 &&
    values.every(v => typeof v === 'string' || typeof v === 'boolean' || (typeof v === 'number' && (!Number.isInteger(v) || Number.isSafeInteger(v))));
}

// editForm makes a form of the arguments: a field for each, or their JSON.
function editForm(entry, asJSON = !isSimple(entry.line.arguments), text) {
  const args = entry.line.arguments;
  const fault = make('p', { class: 'fault', role: 'alert' });
  const id = 'edit-' + entry.line.id;
  let fields = [], area = null;
  if (asJSON) {
    const start = text === undefined ? JSON.stringify(args, null, 2) : text;
    area = make('textarea', { class: 'json', id, rows: String(Math.min(16, Math.max(4, start.split('\n').length + 1))), spellcheck: 'false' });
    area.value = start;
  } else fields = Object.entries(args).map(([name, value], n) => fieldOf(name, value, id + '-' + n));
  const written = () => (asJSON ? area.value : JSON.stringify(Object.fromEntries(fields.map(f => [f.name, f.value()])), null, 2));
  const tell = (why, about = {}) => {
    fault.textContent = why;
    const wrong = area ? [area] : fields.filter(f => f.name in about).map(f => f.node.querySelector('input, textarea'));
    for (const control of wrong) control.setAttribute('aria-invalid', 'true');
    if (wrong.length) wrong[0].focus();
  };
  const form = make('form', { class: 'form', novalidate: true },
    ...(asJSON ? [make('div', {}, make('label', { for: id, text: 'Arguments, as JSON' }), area)] : fields.map(f => f.node)),
    fault,
    make('div', { class: 'buttons' }, make('button', { type: 'submit', class: 'primary', text: entry.line.asks ? 'Save with changes' : 'Approve with changes' }), button('Back', '', () => backTo(entry, 'Edit'))),
    asJSON ? null : button('Edit as JSON', 'plain', () => editForm(entry, true, written())));
  form.addEventListener('submit', e => {
    e.preventDefault();
    const bad = fields.find(f => f.bad && f.bad());
    if (bad) { tell(bad.name + ' must be a number.'); return; }
    const why = jsonFault(written());
    if (why) { tell(why); return; }
    fault.textContent = '';
    form.querySelectorAll('[aria-invalid]').forEach(c => c.removeAttribute('aria-invalid'));
    decide(entry, { verdict: 'edit', arguments: written() }, tell);
  });
  onEscape(form, () => backTo(entry, 'Edit'));
  entry.foot.replaceChildren(form);
  (area || form.querySelector('input, textarea')).focus();
  entry.node.scrollIntoView({ block: 'nearest' });
}

function jsonFault(text) {
  let value;
  try { value = JSON.parse(text); } catch (err) { return 'This is not JSON: ' + err.message; }
  return value && typeof value === 'object' && !Array.isArray(value) ? '' : 'The arguments are an object: {"name": "value"}.';
}

function fieldOf(name, value, id) {
  if (typeof value === 'boolean') {
    const box = make('input', { type: 'checkbox', id });
    box.checked = value;
    return { name, value: () => box.checked, node: make('label', { class: 'check', for: id }, box, name) };
  }
  const label = make('label', { for: id, text: name });
  if (typeof value === 'number') {
    const field = make('input', { type: 'number', step: 'any', id });
    field.value = String(value);
    return { name, value: () => Number(field.value), bad: () => field.value.trim() === '' || isNaN(Number(field.value)), node: make('div', {}, label, field) };
  }
  const long = value.length > 60 || value.includes('\n');
  const field = long ? make('textarea', { id, rows: String(Math.min(12, Math.max(3, value.split('\n').length))) }) : make('input', { type: 'text', id, autocomplete: 'off' });
  field.value = value;
  return { name, value: () => field.value, node: make('div', {}, label, field) };
}

// ---- the stream ----

let source = null, last = '', retry = 0, retryTimer = 0, restTimer = 0;

function linkState(text, live) {
  $('link-text').textContent = text;
  $('link').classList.toggle('live', live);
}

function connect() {
  clearTimeout(retryTimer);
  if (source) source.close();
  const query = new URLSearchParams();
  if (conversation) query.set('c', conversation);
  if (last) query.set('after', last);
  const mine = new EventSource('/api/events?' + query);
  source = mine;
  mine.addEventListener('open', () => { if (mine === source) { retry = 0; linkState('live', true); } });
  mine.addEventListener('snapshot', e => {
    if (mine !== source) return;
    last = e.lastEventId;
    restore(JSON.parse(e.data));
  });
  mine.addEventListener('message', e => {
    if (mine !== source) return;
    last = e.lastEventId;
    const line = JSON.parse(e.data);
    if (!line.at) line.at = new Date().toISOString();
    show(line, true);
  });
  mine.addEventListener('error', () => {
    if (mine !== source) return;
    linkState('reconnecting', false);
    // A browser tries again by itself, but not after an answer that is none.
    if (mine.readyState === EventSource.CLOSED) reconnectLater();
  });
}

async function reconnectLater() {
  retry++;
  try {
    const response = await fetch('/api/sessions');
    if (response.status === 401) {
      linkState('signed out: open the address that Nudge printed', false);
      return;
    }
  } catch { /* the server is away; it may come back */ }
  retryTimer = setTimeout(connect, Math.min(15000, 500 * 2 ** Math.min(retry, 5)));
}

// restart asks for everything anew: another session is shown now.
function restart() {
  last = '';
  connect();
  loadSessions();
}

function restore(shot) {
  const same = shot.session === state.session;
  const unsent = same ? [...state.said.entries()].filter(([, e]) => e.sending) : [];
  log.setAttribute('aria-live', 'off'); // what was said before is not read out again
  clearLog();
  state.session = shot.session;
  state.number = shot.number;
  $('empty').hidden = false;
  shot.lines.forEach(line => show(line, false));
  for (const [id, entry] of unsent) if (!state.said.has(id)) { state.said.set(id, entry); add(entry.node); }
  const waits = [...state.cards.values()].some(c => !c.settled && c.line.turn === shot.turn && shot.turn);
  working(shot.working, !shot.working && Boolean(shot.turn) && waits);
  $('heading').textContent = conversation || 'Conversation ' + shot.number;
  // The examples are read from the top, a conversation from its end.
  const place = () => { if ($('empty').hidden) toEnd(); else scroll.scrollTop = 0; };
  place();
  requestAnimationFrame(() => { place(); log.setAttribute('aria-live', 'polite'); });
  loadSessions();
}

// A page that nobody looks at gives its connection back after a while: browsers have only six for one server.
document.addEventListener('visibilitychange', () => {
  clearTimeout(restTimer);
  if (document.visibilityState === 'hidden') {
    restTimer = setTimeout(() => { if (source) { source.close(); source = null; linkState('paused', false); } }, 5 * 60 * 1000);
    return;
  }
  state.unseen = 0;
  title();
  if (!source || source.readyState === EventSource.CLOSED) connect();
});

// ---- the composer ----

function fit() {
  words.style.height = 'auto';
  words.style.height = words.scrollHeight + 'px';
}

function hint(text) {
  const place = $('hint');
  place.classList.toggle('bad', Boolean(text));
  if (text) place.textContent = text;
  else place.replaceChildren(make('kbd', { text: 'Enter' }), ' sends, ', make('kbd', { text: 'Shift' }), '+', make('kbd', { text: 'Enter' }), ' makes a new line');
}

async function send(text) {
  const id = newID();
  said({ kind: 'said', id, text, own: true }, false);
  const entry = state.said.get(id);
  entry.sending = true;
  await deliver(id, text, entry);
}

async function deliver(id, text, entry) {
  entry.note.className = 'receipt';
  entry.note.textContent = 'sending';
  try {
    await post('/api/say', { id, text });
    entry.sending = false;
    if (entry.note.textContent === 'sending') entry.note.textContent = '';
    hint('');
  } catch (err) {
    entry.note.className = 'receipt failed';
    entry.note.replaceChildren('not sent: ' + err.message, button('Try again', '', () => deliver(id, text, entry)));
  }
}

function submit() {
  const text = words.value;
  if (!text.trim()) return;
  words.value = '';
  fit();
  words.focus();
  send(text);
}

async function quietly(path, body) {
  try {
    await post(path, { id: newID(), ...body });
    hint('');
  } catch (err) {
    hint(err.message);
  }
}

function stop() { return quietly('/api/stop', {}); }

words.addEventListener('input', fit);
words.addEventListener('keydown', e => {
  if (e.key === 'Enter' && !e.shiftKey && !e.isComposing) { e.preventDefault(); submit(); }
});
$('composer').addEventListener('submit', e => { e.preventDefault(); submit(); });
$('stop').addEventListener('click', () => { stop(); words.focus(); });
$('jump').addEventListener('click', () => { toEnd(); words.focus(); });
scroll.addEventListener('scroll', () => { if (atEnd()) $('jump').hidden = true; }, { passive: true });
document.addEventListener('keydown', e => {
  if (e.key !== 'Escape' || e.defaultPrevented || e.isComposing) return;
  if (document.querySelector('dialog[open]')) return; // which it closes
  if ($('side').classList.contains('open')) { side(false); return; }
  if (state.working || state.waiting) { e.preventDefault(); stop(); }
});

const examples = [
  ['write notes.md saying buy milk', 'a new file needs no asking'],
  ['delete notes.md', 'asks first'],
  ['wait 10 seconds and then delete notes.md', 'correct me while I wait'],
  ['remember that I like green tea', 'then ask in a new conversation'],
  ['remind me every minute to stretch', 'I speak first'],
  ['plan: list the files; write list.md saying done; read list.md', 'ticks off a list'],
];
$('examples').append(...examples.map(([text, about]) => make('li', {},
  make('button', { type: 'button', onclick: () => { send(text); words.focus(); } }, text, make('small', { text: about })))));

// ---- the list of sessions ----

let listing = 0;

async function loadSessions() {
  const mine = ++listing;
  let list;
  try {
    const response = await fetch('/api/sessions' + (conversation ? '?' + new URLSearchParams({ c: conversation }) : ''));
    if (!response.ok) return;
    list = await response.json();
  } catch { return; }
  if (mine !== listing) return;
  if (!list.sessions.some(s => s.number === list.current)) list.sessions.unshift({ number: list.current, title: '', last: '' });
  const current = list.sessions.find(s => s.number === list.current);
  if (!conversation && list.current === state.number) $('heading').textContent = current.title || 'New conversation';
  const focused = document.activeElement && document.activeElement.dataset.number;
  $('sessions').replaceChildren(...list.sessions.map(s => {
    const b = make('button', { type: 'button', 'aria-current': s.number === list.current ? 'true' : null, onclick: () => { side(false); if (s.number !== list.current) quietly('/api/say', { text: '/resume ' + s.number, quiet: true }); } },
      make('span', { class: 'title', text: s.title || (s.number === list.current ? 'New conversation' : 'Conversation ' + s.number) }),
      make('span', { class: 'when', text: s.last ? '#' + s.number + ' · ' + agoText(s.last) : '#' + s.number }));
    b.dataset.number = s.number;
    return make('li', {}, b);
  }));
  if (focused) { const again = $('sessions').querySelector('[data-number="' + Number(focused) + '"]'); if (again) again.focus(); }
}

$('new').addEventListener('click', () => { side(false); quietly('/api/say', { text: '/new', quiet: true }); words.focus(); });

function side(open) {
  const was = $('side').classList.contains('open');
  $('side').classList.toggle('open', open);
  $('veil').hidden = !open;
  $('side-open').setAttribute('aria-expanded', String(open));
  if (open) $('side-close').focus();
  else if (was) $('side-open').focus();
}

$('side-open').addEventListener('click', () => side(true));
$('side-close').addEventListener('click', () => side(false));
$('veil').addEventListener('click', () => side(false));

connect();
words.focus();
