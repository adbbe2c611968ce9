// The page inside an MCP host (MCP Apps, 2026-01-26): what it shows and does goes through the host, in messages.
const FAST = 1000, SLOW = 10000, REFUSALS = 2;
const root = document.documentElement, frame = document.getElementById('run');
const notice = h('p', {class: 'note', role: 'status', hidden: true}), bar = h('div', {class: 'bar'}), place = h('div');
let runId = null, seen = '', going = true, watched = false, host = null, context = {}, whole = false;
let looking = false, refused = 0, pause = FAST, timer = null, asking = false, actions = [], staying = false, cap = null;
const known = JSON.parse(document.getElementById('data').textContent);

// ---- messages: JSON-RPC to the window that holds this one, and to no other

const waiting = new Map();
let last = 0;
const send = message => parent.postMessage({jsonrpc: '2.0', ...message}, '*');
const request = (method, params) => new Promise((done, failed) => {
  waiting.set(++last, {done, failed});
  send({id: last, method, params});
});
addEventListener('message', ({source, data}) => {
  if (source !== parent || !data || data.jsonrpc !== '2.0') return;
  if (data.method === undefined) {
    const call = waiting.get(data.id);
    if (!call) return;
    waiting.delete(data.id);
    if (data.error) call.failed(new Error(data.error.message)); else call.done(data.result || {});
  } else if (data.id !== undefined && data.id !== null) {
    if (data.method === 'ui/resource-teardown') leave();
    send(data.method === 'ping' || data.method === 'ui/resource-teardown' ? {id: data.id, result: {}}
      : {id: data.id, error: {code: -32601, message: 'this page doesn\'t support this method'}});
  } else if (told[data.method]) told[data.method](data.params || {});
});
const told = {
  'ui/notifications/tool-input': params => openRun((params.arguments || {}).run_id),
  'ui/notifications/tool-result': openResult,
  'ui/notifications/tool-cancelled': () => { if (!runId) say('The call was stopped before it started a run.'); },
  'ui/notifications/host-context-changed': settle,
};
const textOf = result => (result.content || []).filter(block => block.type === 'text').map(block => block.text).join('\n');
async function callTool(name, args) {
  const result = await request('tools/call', {name, arguments: args});
  if (result.isError) throw Object.assign(new Error(textOf(result).replace(/^ERROR \w+: /, '')), {final: /^ERROR (unknown_run|expired)\b/.test(textOf(result))});
  return result.structuredContent || {};
}

// ---- which run

function openRun(id) {
  if (typeof id !== 'string' || id === runId) return;
  [runId, seen, going, watched] = [id, '', true, false];
  look();
}
function openResult(result) {
  // What is refused may name another run.
  const id = !result.isError && ((result.structuredContent || {}).run_id || (/\brun-[a-z2-7]{26}\b/.exec(textOf(result)) || [])[0]);
  if (id) openRun(id);
  else if (!runId) say(textOf(result) || 'The tool returned no run.');
}

// ---- its data: often while it changes, seldom while it does not, never once it has ended or while nobody looks

async function look() {
  if (!host || !runId || looking) return;
  looking = true;
  const id = runId, began = Date.now();
  try {
    const news = await callTool('run_page', {run_id: id, seen});
    if (id === runId) take(news, Date.now() - began);
    refused = 0;
  } catch (error) {
    refused = error.final ? REFUSALS : refused + 1;
    say(`Cannot show the run: ${error.message}`);
  }
  looking = false;
  if (id !== runId) return look();
  tools();
  plan();
}
function take(news, took) {
  // What takes long to draw is asked for less often, so that it keeps nobody busy.
  pause = news.page ? Math.max(FAST, Math.min(SLOW, 4 * took)) : Math.min(SLOW, 1.5 * pause);
  if (news.page) {
    draw(news.page, place);
    actions = news.page.actions;
    cap = news.page.max_usd;
    seen = news.version;
    if (news.note || !staying) say(news.note);
  } else if (refused) say('');
  going = news.goes_on;
  // A page that is opened again tells its model nothing a second time.
  if (going) watched = true;
  else if (watched && news.ending) {
    watched = false;
    if (host.hostCapabilities.updateModelContext) request('ui/update-model-context', {content: [{type: 'text', text: news.ending}]}).catch(() => {});
  }
}
function plan() {
  clearTimeout(timer);
  if (going && refused < REFUSALS && !document.hidden) timer = setTimeout(look, pause);
}
function leave() {
  clearTimeout(timer);
  runId = null;
}
document.addEventListener('visibilitychange', () => {
  clearTimeout(timer);
  if (going && refused < REFUSALS && !document.hidden) look();
});

// ---- what the reader can do

// What could not be done stays to be read when the run is drawn anew.
const say = (words, stays = false) => {
  notice.textContent = visible(words);
  notice.hidden = !words;
  staying = stays;
};
const button = (words, onclick) => h('button', {type: 'button', key: words, onclick}, words);
function tools() {
  const acting = seen && going && host.hostCapabilities.serverTools, modes = context.availableDisplayModes || [];
  const full = context.displayMode === 'fullscreen';
  place.className = whole || full ? '' : 'brief';
  if (asking && acting) return;
  asking = false;
  merge(bar, [
    refused >= REFUSALS && button('Try again', () => { refused = 0; look(); }),
    seen && !full && button(whole ? 'Show less' : 'Show everything', () => { whole = !whole; tools(); }),
    seen && !full && modes.includes('fullscreen') && button('Full view', () => mode('fullscreen')),
    full && modes.includes('inline') && button('Back to the conversation', () => mode('inline')),
    ...acting ? actions.map(action => button(`${OFFERED[action][0]}…`, () => ask(OFFERED[action][1]()))) : [],
  ].filter(Boolean));
}
// What is to be done stands in the place of the buttons until it is done or left.
function ask(parts) {
  asking = Boolean(parts);
  if (asking) bar.replaceChildren(...parts, button('Back', () => ask(null))); else tools();
  const first = bar.querySelector('textarea, input, button');
  if (first) first.focus();
}
function write(action, label) {
  const text = h('textarea', {'aria-label': label, rows: 2, maxlength: known.message_characters});
  return [text, button('Send', () => { if (text.value.trim()) act(action, {message: text.value}); })];
}
function raise() {
  const usd = h('input', {type: 'number', min: 0, step: 'any', 'aria-label': 'New budget in $'});
  return [`The budget is $${cap}. New budget in $:`, usd, button('Raise it', () => { if (usd.value) act('raise_budget', {value: Number(usd.value)}); })];
}
const sure = (question, label, action) => () => [question, button(label, () => act(action))];
// The actions of a run that this page offers: the button of each, and what is asked before it is done.
const OFFERED = {
  answer: ['Answer', () => write('answer', 'Answer to the run\'s question')],
  steer: ['Message', () => write('steer', 'Message for all agents')],
  raise_budget: ['Raise the budget', raise],
  finish_now: ['Finish now', sure('Decide now with the existing answers?', 'Finish now', 'finish_now')],
  resume: ['Resume', sure('Continue the run where it was interrupted?', 'Resume the run', 'resume')],
  cancel: ['Cancel', sure('Stop the run and keep its best answer so far?', 'Cancel the run', 'cancel')],
};
async function act(action, more) {
  ask(null);
  try {
    await callTool('control_run', {run_id: runId, action, ...more});
    say('');
    pause = FAST;
    look();
  } catch (error) {
    say(`That didn\'t work: ${error.message}`, true);
  }
}
const mode = wanted => request('ui/request-display-mode', {mode: wanted})
  .then(got => settle({displayMode: got.mode}), error => say(`The host can\'t show the run this way: ${error.message}`, true));
document.addEventListener('click', event => {
  const link = event.target.closest('a[href]');
  if (!link) return;
  event.preventDefault();
  request('ui/open-link', {url: link.href}).then(({isError}) => { if (isError) throw new Error('it refused'); })
    .catch(error => say(`The host did not open ${link.href}: ${error.message}`, true));
});

// ---- how the host looks: its theme, its colours, its font

const OF_HOST = {'--bg': '--color-background-primary', '--card': '--color-background-primary', '--soft': '--color-background-secondary',
  '--ink': '--color-text-primary', '--dim': '--color-text-secondary', '--line': '--color-border-primary'};
const dark = [...document.styleSheets].flatMap(sheet => [...sheet.cssRules]).filter(rule => rule.media && rule.cssText.includes('--c0'));
function settle(change) {
  context = {...context, ...change};
  const {theme, styles} = context, variables = styles && styles.variables || {};
  if (theme) {
    root.style.colorScheme = theme;
    for (const rule of dark) rule.media.mediaText = theme === 'dark' ? 'all' : 'not all';
  }
  for (const [name, value] of Object.entries(variables)) if (name.startsWith('--') && value) root.style.setProperty(name, value);
  for (const [ours, theirs] of Object.entries(OF_HOST)) if (variables[theirs]) root.style.setProperty(ours, variables[theirs]);
  if (variables['--font-sans']) document.body.style.fontFamily = variables['--font-sans'];
  tools();
}
let tall = 0;
function measure() {
  const height = Math.ceil(root.getBoundingClientRect().height);
  if (host && height !== tall) send({method: 'ui/notifications/size-changed', params: {height: tall = height}});
}
new ResizeObserver(measure).observe(root);

async function begin() {
  frame.className = 'app';
  frame.replaceChildren(notice, bar, place);
  if (parent === window) return say('In an MCP host, the run appears here. Without an MCP host, open report.html in the run\'s directory.');
  say('Waiting for the run…');
  const appCapabilities = {availableDisplayModes: ['inline', 'fullscreen']};
  const got = await request('ui/initialize', {protocolVersion: '2026-01-26', appInfo: {name: 'massgen-run', version: '1'}, appCapabilities});
  host = {...got, hostCapabilities: got.hostCapabilities || {}};
  send({method: 'ui/notifications/initialized', params: {}});
  settle(got.hostContext || {});
  measure();
  look();
}
begin().catch(error => say(`The host doesn\'t accept this page: ${error.message}`));
