// `massgen web`: the list of runs, the form that starts one, and one run while it goes on. What is done is a call of
// the MCP tools.
const field = (label, element, kind) => h('label', {class: kind}, label, element);
const toned = run => {
  const tone = run.weak ? 'busy' : known.states[run.status], sign = {good: '✓ ', bad: '✗ ', busy: run.weak ? '! ' : ''}[tone];
  return h('span', {class: `pill ${tone}`}, sign + (run.summary || run.weak || run.status.replace(/_/g, ' ')));
};
const lasted = seconds => seconds < 60 ? `${seconds.toFixed(1)} s` : clock(seconds);
const day = seconds => new Date(seconds * 1000).toLocaleString();
// One thing at a time: the button waits for it, and what is refused is said.
const doing = (button, where, work) => async event => {
  if (event) event.preventDefault();
  const held = document.activeElement === button;
  button.disabled = true;
  try { await work(); } catch (error) { failed(where, error); }
  button.disabled = false;
  if (held && document.activeElement === document.body) (button.checkVisibility() ? button : where).focus();  // whoever works by keyboard stays there
};

const COLUMNS = {Against: run => run.dissent || 0, Cost: run => run.usd, Time: run => run.seconds, Started: run => run.started};
const MOST_SORTED = 1000;

function list() {
  document.title = 'Runs · massgen';
  const query = new URLSearchParams(location.search), names = ['text', 'team', 'state', 'kind', 'since', 'before'];
  const input = (name, attributes) => h('input', {name, value: query.get(name), ...attributes, oninput: later});
  const state = h('select', {name: 'state', onchange: later}, h('option', {value: ''}, 'any state'),
    Object.keys(known.states).map(name => h('option', {value: name, selected: query.get('state') === name}, name.replace(/_/g, ' '))));
  const kinds = {'': 'single runs', batch: 'batch runs', eval: 'evaluation runs', all: 'all runs'};
  const kind = h('select', {name: 'kind', onchange: later},
    Object.entries(kinds).map(([value, text]) => h('option', {value, selected: (query.get('kind') || '') === value}, text)));
  const form = h('form', {role: 'search', onsubmit: event => { event.preventDefault(); begin(); }},
    field('Question or id', input('text', {type: 'search'})), field('Team', input('team', {type: 'search'})), field('State', state), field('Runs', kind),
    field('From', input('since', {type: 'date'})), field('To', input('before', {type: 'date'})));
  const rows = h('ul', {class: 'runs'}), note = told(), heads = h('div', {class: 'heads', role: 'group', 'aria-label': 'Sort by'}), both = h('p', {class: 'both', role: 'status'}), drawn = new Map();
  const more = h('button', {type: 'button', hidden: true}, 'More');
  const [, first, sorted] = /^(-?)(.*)$/.exec(query.get('sort') || '');
  let by = COLUMNS[sorted] ? sorted : 'Started', up = first === '-', runs = [], next = null, timer = null, asked = 0, chosen = query.getAll('compare').slice(-1);
  function later() { clearTimeout(timer); timer = setTimeout(begin, 250); }
  function wanted(extra) {
    const values = new URLSearchParams(), shown = new URLSearchParams();
    for (const name of names) {
      const value = form.elements[name].value;
      if (!value) continue;
      shown.set(name, value);
      const date = new Date(`${value}T00:00`);
      if (name === 'before') date.setDate(date.getDate() + 1);
      values.set(name, name === 'since' || name === 'before' ? date / 1000 : value);
    }
    if (up || by !== 'Started') shown.set('sort', (up ? '-' : '') + by);
    for (const id of query.getAll('compare')) shown.append('compare', id);
    history.replaceState(null, '', shown.size ? `?${shown}` : location.pathname);
    for (const [name, value] of Object.entries(extra)) values.set(name, value);
    return `/api/runs?${values}`;
  }
  async function load(extra, joined) {
    const mine = ++asked, got = await (await ask(wanted(extra))).json();
    if (mine !== asked) return false;
    [runs, next] = joined(got.runs, got.next_cursor || null);
    more.hidden = !next;
    say(note, runs.length ? '' : names.some(name => form.elements[name].value) ? 'No run matches.' : 'There are no runs yet.');
    draw();
    return true;
  }
  function draw() {
    const value = COLUMNS[by], known = runs.filter(run => Number.isFinite(value(run))), rest = runs.filter(run => !Number.isFinite(value(run)));
    merge(rows, [...known.sort((a, b) => (up ? 1 : -1) * (value(a) - value(b))), ...rest].map(row));
    merge(heads, [...['', 'Question', 'Outcome'].map(head => h('span', {'aria-hidden': 'true'}, head)), ...Object.keys(COLUMNS).map(name => h('button', {type: 'button', key: name, value: name, 'aria-pressed': String(name === by)},
      name, name === by ? [h('span', {'aria-hidden': 'true'}, up ? ' ▴' : ' ▾'), h('span', {class: 'sr'}, up ? ', lowest first' : ', highest first')] : null))]);
    if (next && (up || by !== 'Started')) say(note, `Only the newest ${runs.length} runs are sorted.`);
    choose();
  }
  // What is sorted otherwise than it comes has to be here first; whoever asks for something else meanwhile goes on with that.
  const fill = async () => { while ((up || by !== 'Started') && next && runs.length < MOST_SORTED && await load({cursor: next, limit: known.most_runs}, (found, after) => [[...runs, ...found], after])); };
  heads.addEventListener('click', event => {
    const button = event.target.closest('button');
    if (!button) return;
    [by, up] = [button.value, by === button.value && !up];
    wanted({});
    draw();
    fill().catch(error => failed(note, error));
  });
  // The same element as before, where nothing is new: with many runs on the page little is drawn again.
  function row(run) {
    const told = JSON.stringify(run), before = drawn.get(run.run_id);
    if (before && before.told === told) return before.element;
    const element = rowOf(run);
    drawn.set(run.run_id, {told, element: before && before.element.isConnected ? before.element : element});
    return element;
  }
  const figure = (name, kind, ...value) => h('span', {class: kind}, value.some(Boolean) ? [h('span', {class: 'sr'}, `${name}: `), value] : null);
  const rowOf = run => h('li', {key: run.run_id}, h('input', {type: 'checkbox', value: run.run_id, 'aria-label': `Compare ${flat(run.question, 60) || run.run_id}`}),
    h('div', {class: 'what'}, anchor(`/runs/${encodeURIComponent(run.run_id)}`, h('bdi', {}, visible(run.question) || run.run_id)),
      h('div', {class: 'facts'}, h('span', {}, bdi(run.source)), run.winner ? h('span', {}, 'won by ', bdi(run.winner)) : null,
        run.applied ? h('span', {class: 'good'}, `applied ${day(run.applied)}`) : null, run.parent ? h('span', {}, 'nested in ', anchor(`/runs/${run.parent}`, run.parent)) : null,
        run.expired ? h('span', {}, 'deleted because of its age') : null, run.reason ? h('span', {}, bdi(run.reason)) : null, h('span', {}, run.run_id))),
    h('span', {class: 'out'}, toned(run)), figure('Against', 'n no', run.dissent ? `${run.dissent} of ${run.voted}` : null),
    figure('Cost', 'n', run.cost), figure('Time', 'n', run.seconds === undefined ? null : lasted(run.seconds)), figure('Started', 'at', day(run.started)));
  // Two runs are chosen; a third one takes the place of the first.
  function choose() {
    for (const box of rows.querySelectorAll('input')) box.checked = chosen.includes(box.value);
    merge(both, chosen.length < 2 ? [chosen.length ? `Choose a second run to compare with ${chosen[0]}.` : ''].map(text => document.createTextNode(text))
      : [anchor(`/compare?${new URLSearchParams(chosen.map(id => ['run', id]))}`, 'Compare the two selected runs')]);
  }
  rows.addEventListener('change', event => {
    const id = event.target.value;
    chosen = event.target.checked ? [...chosen, id].slice(-2) : chosen.filter(one => one !== id);
    choose();
  });
  rows.addEventListener('keydown', event => {
    const all = [...rows.querySelectorAll('.what>a')], at = all.indexOf(document.activeElement), to = {ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1}[event.key];
    if (at < 0 || !all[to]) return;
    event.preventDefault();
    all[to].focus();
  });
  const begin = () => load({limit: known.runs}, (found, after) => [found, after]).then(fill).catch(error => failed(note, error));
  // The newest ones anew; those below them stay as they are.
  const again = () => load({limit: Math.min(known.most_runs, Math.max(known.runs, runs.length))}, (found, after) => {
    const last = runs.findIndex(run => run.run_id === (found.at(-1) || {}).run_id), rest = after && last >= 0 ? runs.slice(last + 1) : [];
    return [[...found, ...rest], rest.length ? next : after];
  }).then(fill).catch(error => failed(note, error));
  more.addEventListener('click', doing(more, note, () => load({cursor: next, limit: known.most_runs}, (found, after) => [[...runs, ...found], after])));
  place.replaceChildren(h('nav', {}, anchor('/new', 'Start a run'), anchor('/statistics', 'Statistics'), leave()), h('h1', {}, 'Runs'), h('section', {}, form),
    h('section', {}, both, heads, rows, note, more));
  begin();
  setInterval(() => { if (!document.hidden && !more.disabled && !out.isConnected) again(); }, 5000);
}

// Two runs side by side.
async function against(ids) {
  document.title = 'Two runs · massgen';
  const note = told(), into = h('div');
  place.replaceChildren(h('nav', {}, anchor('/', '← Runs'), leave()), h('h1', {}, 'Two runs'), note, into);
  try {
    if (ids.length !== 2) throw new Refused('Select two runs in the list.');
    say(note, 'Reading both …');
    const runs = await Promise.all(ids.map(once));
    say(note, '');
    const line = (head, cell) => h('tr', {}, h('th', {scope: 'row'}, head), runs.map(run => h('td', {}, cell(run))));
    const who = (run, name) => bdi((run.agents.find(agent => agent.name === name) || {id: name}).id), listed = rows => rows.length ? h('ul', {}, rows.map(row => h('li', {}, row))) : h('span', {class: 'dim'}, 'none');
    const [a, b] = runs, text = run => run.answer ? run.answer.text : '', files = run => run.changes && run.changes.patch ? run.patches[run.changes.patch].text : '';
    into.replaceChildren(h('section', {}, h('table', {class: 'against'}, h('thead', {}, h('tr', {}, h('td'), runs.map((run, k) => h('th', {scope: 'col'}, k ? 'Second: ' : 'First: ', anchor(`/runs/${encodeURIComponent(run.run_id)}`, run.run_id))))),
      h('tbody', {}, line('Question', run => plain(run.question)), line('Outcome', run => [h('span', {class: `pill ${run.tone}`}, run.headline), run.cautions.map(one => h('p', {class: 'caution'}, visible(one)))]),
        line('In figures', run => listed(run.facts.map(visible))), line('Team', run => listed(run.agents.map(agent => [bdi(agent.id), ' ', h('span', {class: 'dim'}, bdi(agent.model))]))),
        line('Votes', run => listed(run.votes.filter(vote => vote.stands).map(vote => [who(run, vote.agent), ' → ', who(run, (run.answers.find(one => one.key === vote.answer) || {}).agent), vote.run_off ? ' in the run-off' : '', vote.dissent ? ' (dissent)' : '']))),
        line('Changes', run => run.changes ? run.changes.say : h('span', {class: 'dim'}, 'none'))))),
    h('section', {}, h('h2', {}, 'Changes from the first answer to the second'), text(a) && text(b) ? difference(text(a), text(b)) : h('p', {class: 'dim'}, 'Answers can be compared only if both runs have one.'),
      runs.some(run => run.answer && run.answer.left_out) ? h('p', {class: 'note'}, 'Only the parts shown here were compared.') : null),
    files(a) || files(b) ? h('section', {}, h('h2', {}, 'In files'), filesCompared(files(a), files(b))) : '');
  } catch (error) { failed(note, error); }
}

// Buttons beside a text of lines: each puts its line in, or takes it out again.
function picks(name, area) {
  const lines = () => area.value.split('\n').map(line => line.trim()).filter(Boolean), box = h('div', {class: 'picks', role: 'group', 'aria-label': name});
  let offered = [];
  const show = () => merge(box, offered.map(one => h('button', {type: 'button', key: one, value: one, 'aria-pressed': String(lines().includes(one))}, visible(one))));
  box.addEventListener('click', event => {
    const one = event.target.value;
    if (!one) return;
    area.value = (lines().includes(one) ? lines().filter(line => line !== one) : [...lines(), one]).join('\n');
    area.dispatchEvent(new Event('input', {bubbles: true}));
  });
  area.addEventListener('input', show);
  return {box, show, offer: found => { offered = found; show(); }};
}

function start() {
  document.title = 'Start a run · massgen';
  const query = new URLSearchParams(location.search), earlier = query.get('again') || query.get('after'), follows = query.has('after');
  const one = (name, label, attributes, kind) => field(label, h('input', {name, ...attributes}), kind);
  const many = (name, label, rows, required) => field(label, h('textarea', {name, rows, required}), 'whole');
  const teams = h('select', {name: 'team'}, h('option', {value: ''}, 'The default team, or your config')), sums = h('p', {class: 'told', role: 'status'}), about = told(), clis = h('p', {class: 'dim whole'});
  const note = told(), plan = h('button', {type: 'button'}, 'Show the plan'), go = h('button', {class: 'main'}, 'Start');
  const decides = h('select', {name: 'decide'}, [['', 'as in the team\'s config'], ['vote', 'votes'], ['checks', 'tests that agents write'], ['synthesise', 'merging all answers']].map(([value, words]) => h('option', {value}, words)));
  const goOn = h('label', {class: 'box', hidden: true}, h('input', {type: 'checkbox', name: 'goOn'}), 'Start from the earlier run\'s unapplied changes');
  const form = h('form', {}, many('question', follows ? 'The next question' : 'Question: describe the whole task, because the team sees nothing else', 6, true), goOn,
    field('Team', teams, 'broad'), one('config', 'Or your own team: path to a YAML file', {}, 'broad'),
    many('models', 'Or models, one per line, as backend/model', 2), one('num_agents', 'Number of agents, if you want more agents than models', {type: 'number', min: 1, max: known.agents}), field('Decided by', decides, 'broad'),
    clis, many('context_paths', 'Files and directories that the team may read: one absolute path per line', 2),
    h('label', {class: 'box'}, h('input', {type: 'checkbox', name: 'write'}), 'The team may change copies of them; you can apply the changes later'),
    many('checks', 'Commands that test the changes to these paths, one per line', 2),
    one('max_usd', 'Budget in $', {type: 'number', min: 0, step: 'any'}), one('max_seconds', 'Time limit (seconds)', {type: 'number', min: 1}),
    one('max_answers', 'Answers per agent', {type: 'number', min: 1, max: known.answers}), sums, plan, go);
  const {elements} = form, value = name => elements[name].value.trim(), rows = name => value(name).split('\n').map(row => row.trim()).filter(Boolean);
  const offers = Object.fromEntries([['models', 'Available models'], ['context_paths', 'Recent directories'], ['checks', 'Checks found in these directories']].map(([name, words]) => {
    const made = picks(words, elements[name]);
    elements[name].parentElement.after(made.box);
    return [name, made];
  }));
  let session = null, timer = null, asked = 0, looked = '';
  function given() {
    const permission = elements.write.checked ? 'write' : 'read', args = {question: elements.question.value}, team = value('config') || value('team');
    if (team) args.team = team;
    if (value('decide')) args.decide = value('decide');
    for (const name of ['models', 'checks']) if (rows(name).length) args[name] = rows(name);
    if (rows('context_paths').length) args.context_paths = rows('context_paths').map(path => ({path, permission}));
    for (const name of ['num_agents', 'max_usd', 'max_seconds', 'max_answers']) if (value(name)) args[name] = Number(value(name));
    if (session) args.session_id = session;
    if (elements.goOn.checked) args.changes_of = 'winner';
    return args;
  }
  const teamOf = made => Object.entries(made.team).map(([name, model]) => `${name} (${model})`).join(', ');
  // What it will cost, before anybody presses a button. Nobody's checks are run for that, so nothing is said of files.
  async function sum() {
    const mine = ++asked, {context_paths: paths, checks, session_id, changes_of, ...rest} = given();
    try {
      const made = await tool('start_run', {...rest, question: rest.question || '?', dry_run: true});
      if (mine === asked) say(sums, [`${made.source}: ${teamOf(made)}`, `Estimate: ${made.estimate}`, (made.missing_keys || []).length ? `Missing: ${made.missing_keys.join(', ')}` : ''].filter(Boolean).join('\n'), Boolean((made.missing_keys || []).length));
    } catch (error) {
      if (mine === asked) paths && !error.message.includes('no_default_team') ? say(sums, 'The plan shows the cost.') : failed(sums, error);
    }
  }
  // What the directories seem to be tested by.
  async function look() {
    const paths = rows('context_paths'), query = new URLSearchParams(paths.map(path => ['directory', path])).toString();
    if (query === looked) return;
    looked = query;
    const found = paths.length ? await ask(`/api/checks?${query}`).then(answer => answer.json()).catch(() => ({checks: []})) : {checks: []};
    if (query === looked) offers.checks.offer(found.checks);
  }
  const later = () => { clearTimeout(timer); timer = setTimeout(() => { sum(); look(); }, 400); };
  form.addEventListener('input', later);
  plan.addEventListener('click', doing(plan, note, async () => {
    if (!form.reportValidity()) return;
    const made = await tool('start_run', {...given(), dry_run: true});
    say(note, [`Team: ${teamOf(made)}`, made.source, made.reach, made.estimate, made.ignored, made.note,
      ...(made.checks || []).map(one => `Check ${one.state} now: ${one.command}${one.how ? ` (${one.how})` : ''}${one.cure ? `. ${one.cure}` : ''}`),
      (made.missing_keys || []).length ? `Missing: ${made.missing_keys.join(', ')}` : null].filter(Boolean).join('\n'));
  }));
  form.addEventListener('submit', doing(go, note, async () => {
    location.assign(`/runs/${encodeURIComponent((await tool('start_run', given())).run_id)}`);
  }));
  place.replaceChildren(h('nav', {}, anchor('/', '← Runs'), leave()), h('h1', {}, follows ? 'Follow up' : 'Start a run'), about, h('section', {}, form, note));
  // A team that is not among the ready ones is a config of the user's.
  const choose = team => { teams.value = team; if (teams.value !== team) { teams.value = ''; elements.config.value = team; } };
  async function fill() {
    const again = await (await ask(`${pathOf(earlier)}/request`)).json();
    for (const [name, lines] of [['models', again.models || []], ['checks', again.checks], ['context_paths', again.context_paths.map(one => one.path)]]) elements[name].value = lines.join('\n');
    for (const name of ['max_usd', 'max_seconds', 'max_answers', 'decide']) if (again[name] !== undefined) elements[name].value = again[name];
    elements.write.checked = again.context_paths.some(one => one.permission === 'write');
    if (again.team) choose(again.team);
    if (follows) { session = again.session_id; goOn.hidden = !again.unapplied; } else elements.question.value = again.question;
    about.replaceChildren(follows ? 'The team reads the question and answer of: ' : 'As in: ', anchor(`/runs/${encodeURIComponent(earlier)}`, flat(again.question, 100)));
    for (const offer of Object.values(offers)) offer.show();
    elements.question.focus();
  }
  const quiet = () => {};
  const ready = tool('list_configs', {}).then(({configs}) => {
    const all = Object.entries(configs), option = ([name, one]) => h('option', {value: name, disabled: Boolean(one.missing)}, `${name}: ${one.missing ? `${one.missing.join(', ')} missing` : one.models}${one.usd ? `, $${one.usd}` : ''}`);
    for (const [label, some] of [['Ready to run', all.filter(([, one]) => !one.missing)], ['Something is missing', all.filter(([, one]) => one.missing)]])
      if (some.length) teams.append(h('optgroup', {label}, some.map(option)));
  }).catch(quiet);
  ask('/api/form').then(answer => answer.json()).then(found => { offers.models.offer(found.models); clis.textContent = found.clis.length ? `Agent CLIs on this machine: ${found.clis.join('; ')}` : ''; offers.context_paths.offer(found.directories); }).catch(quiet);
  ready.then(() => earlier && fill()).catch(error => failed(about, error)).then(() => { sum(); look(); });
}

function one(id) {
  let run = null;
  const note = told(), controls = h('section', {'aria-label': 'Controls'}), into = h('div', {class: 'page'}), line = h('span', {class: 'facts'}), heard = h('p', {class: 'sr', role: 'status'});
  const apply = h('div', {tabindex: -1}), wish = h('textarea', {rows: 3, maxlength: known.message_characters}), message = h('textarea', {rows: 2, 'aria-label': 'Message', maxlength: known.message_characters});
  place.className = 'one';
  const of = (page, name, words) => anchor(`/${page}?${new URLSearchParams({[name]: id})}`, words), next = of('new', 'after', 'Follow up');
  next.hidden = true;
  place.replaceChildren(h('nav', {}, anchor('/', '← Runs'), of('new', 'again', 'Run again'), next, of('', 'compare', 'Compare'), line, leave()), controls, into, heard);

  const act = (label, action, more = {}) => {
    const button = h('button', {type: 'button', class: more.main ? 'main' : null}, label);
    button.addEventListener('click', doing(button, note, async () => {
      if (more.sure && button.textContent === label) { button.textContent = more.sure; return; }
      const args = more.args ? more.args() : {};
      if (!args) return;
      const sent = more.from && more.from.value;
      await tool('control_run', {run_id: id, action, ...args});
      if (more.from && more.from.value === sent) more.from.value = '';
      say(note, more.done);
      wake();
    }));
    if (more.sure) button.addEventListener('blur', () => { button.textContent = label; });
    return button;
  };
  const usd = h('input', {type: 'number', min: 0, step: 'any', 'aria-label': 'New budget in $', class: 'short'});
  const written = () => message.value.trim() ? {message: message.value} : (message.focus(), null);
  const look = h('button', {type: 'button'}, 'Show the changed files');
  look.addEventListener('click', doing(look, note, () => changes(run, apply, note, wish)));

  // What each action needs; which of them there are now is told with the run. Nothing is moved or made anew: somebody may
  // be in the middle of a word.
  const to = h('span'), words = field(to, message, 'whole');
  message.addEventListener('keydown', event => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) for (const button of [offered.answer[1], offered.steer[1]]) if (!button.hidden) button.click();
  });
  const offered = {
    answer: [words, act('Answer', 'answer', {main: true, from: message, args: written, done: 'The run received your answer.'})],
    steer: [words, act('Tell the team', 'steer', {from: message, args: written, done: 'The team will read your message.'})],
    raise_budget: [h('span', {class: 'pair'}, usd, act('Raise the budget', 'raise_budget', {from: usd, args: () => usd.value ? {value: Number(usd.value)} : (usd.focus(), null), done: 'The budget was raised.'}))],
    finish_now: [act('Finish now', 'finish_now', {done: 'The run is finishing with the existing answers.'})],
    resume: [act('Resume', 'resume', {main: true, done: 'The run continues.'})],
    cancel: [act('Cancel', 'cancel', {sure: 'Press again to cancel', done: 'The run is cancelled.'})],
    apply: [look],
  };
  const box = h('div', {class: 'controls', hidden: true}, [...new Set(Object.values(offered).flat())]);
  controls.append(box, note, apply);
  function control() {
    const shown = new Set(run.actions.flatMap(action => offered[action]));
    to.textContent = run.actions.includes('answer') ? 'Your answer' : 'To the whole team';
    usd.placeholder = run.max_usd === null ? '' : `above ${run.max_usd}`;
    const held = box.contains(document.activeElement) && document.activeElement;
    for (const one of box.children) one.hidden = !shown.has(one);
    box.hidden = !shown.size;
    if (held && !held.checkVisibility()) note.focus();  // what was done there stands in it
    next.hidden = !run.ended;
  }
  function time() {
    const goes = run && run.started_at !== null && !run.ended && run.state !== 'interrupted';
    line.textContent = goes ? `started ${clock(Date.now() / 1000 - run.started_at)} ago` : '';
  }
  setInterval(time, 1000);
  let trouble = '';
  const complain = text => { say(note, text, true); trouble = note.textContent; };
  const hear = (kind, data) => {
    if (kind === 'page' && trouble && note.textContent === trouble) say(note, '');
    if (kind === 'fault') return complain(data.error);
    if (kind !== 'page' && (kind !== 'change' || !run)) return;
    run = kind === 'page' ? data : {...run, ...data};
    draw(run, into);
    control();
    time();
    const tells = run.story || `The run has ended: ${run.headline}.`;
    if (heard.textContent !== tells) heard.textContent = tells;
  };
  const wake = follow(pathOf(id), hear, (text, bad) => {
    if (!run) merge(into, [h('p', {role: 'status', class: bad ? 'bad' : 'dim'}, visible(text))]);
    else complain(text);
  });
}

// What the server tells of a run, as it happens, as pairs of a kind and data.
async function* events(path, options) {
  const reader = (await ask(path, options)).body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ''; ;) {
    const {value, done} = await reader.read();
    if (done) return;
    const parts = (rest + value).split('\n\n');
    rest = parts.pop();
    for (const part of parts) {
      const [, kind, data] = /^event: (\w+)\ndata: ([^]*)$/.exec(part) || [];
      if (kind) yield [kind, data];
    }
  }
}
const pathOf = id => `/api/runs/${encodeURIComponent(id)}`;
// A run as it is now.
async function once(id) {
  const stop = new AbortController();
  try {
    for await (const [kind, data] of events(pathOf(id), {signal: stop.signal})) {
      if (kind === 'page') return JSON.parse(data);
      if (kind === 'fault') throw new Refused(JSON.parse(data).error);
    }
    throw new Refused('Cannot read the run.');
  } finally { stop.abort(); }
}

// The events of a run while somebody looks: a page in the background lets go of its connection, as browsers have few.
// Returns what has to be called when something was done that may make an ended stream go on.
function follow(path, hear, tell) {
  let stop = null, over = false, wait = 0;
  async function read() {
    if (stop || document.hidden) return;
    stop = new AbortController();
    try {
      for await (const [kind, data] of events(path, {signal: stop.signal})) {
        if (kind !== 'fault') wait = 0;
        if (kind === 'end') over = true;
        try { hear(kind, JSON.parse(data)); } catch (error) { tell(`Cannot display this: ${error.message}`, true); }
      }
    } catch (error) {
      if (error instanceof Refused) { over = !error.passing; tell(error.message, true); }
      else if (error.name !== 'AbortError') tell('Cannot reach the server; trying again.', true);
    }
    stop = null;
    if (!over && !document.hidden) setTimeout(read, wait = Math.min(10000, wait + 1000));
  }
  document.addEventListener('visibilitychange', () => { if (document.hidden) stop && stop.abort(); else if (!over) read(); });
  read();
  return () => { over = false; read(); };
}

// What the team changed in files, the run's result or what one agent (`whose`) did last: shown first, with what stands in
// its way; then, if somebody says so, done.
async function changes(run, into, note, wish, whose) {
  const result = run.changes && run.changes.files.length, changed = run.agents.filter(agent => agent.changed && !(result && agent.author));
  if (whose === undefined) whose = result ? '' : changed[0].id;
  const id = run.run_id, of = whose ? {agent: whose} : {}, plan = await tool('apply_result', {run_id: id, ...of});
  let text = '', offset = 0;
  while (offset !== undefined) {
    const page = await tool('get_result', {run_id: id, view: 'diff', ...of, offset});
    text += page.answer || '';
    offset = page.next_offset;
  }
  const now = file => file.to === null ? file.from : file.to, inText = new Map(filesOf(text).map(file => [now(file), file]));
  const stuck = (plan.conflicts || []).map(one => one.path), free = file => plan.status === 'clean' || plan.status === 'conflicts' && !stuck.includes(file.path);
  // A plan in whose way something is names that alone.
  const files = plan.files.length ? plan.files : [...inText.values()].map(file => ({path: now(file), change: wordsOf(file)[0] || 'modified', uncounted: true}));
  const others = (plan.left_out || []).map(one => h('input', {type: 'checkbox', value: one.path}));
  const hunks = new Map();  // the boxes of each file that has more than one
  const boxes = files.map(file => {
    const box = h('input', {type: 'checkbox', checked: free(file), value: file.path, disabled: !free(file), onchange: () => mine.forEach(one => { one.checked = box.checked; })});
    const told = () => { box.checked = mine.some(one => one.checked); box.indeterminate = box.checked && mine.some(one => !one.checked); };
    const many = (inText.get(file.path) || {hunks: []}).hunks, mine = many.length < 2 ? [] : many.map((_, k) =>
      h('input', {type: 'checkbox', checked: free(file), disabled: !free(file), value: `${file.path}#${k + 1}`, onchange: told}));
    hunks.set(file.path, mine);
    return box;
  });
  const chosen = box => (hunks.get(box.value) || []).some(one => !one.checked) && box.checked ? hunks.get(box.value).filter(one => one.checked) : box.checked ? [box] : [];
  const comment = (file, line) => {
    wish.value += `${wish.value && !wish.value.endsWith('\n') ? '\n' : ''}${now(file)}:${line}: `;
    wish.focus();
  };
  const go = h('button', {type: 'button', class: 'main'}, 'Apply to your files'), ask_for = h('button', {type: 'button'}, 'Request changes');
  ask_for.addEventListener('click', doing(ask_for, note, async () => {
    if (!wish.value.trim()) return wish.focus();
    const {unapplied, ...again} = await (await ask(`${pathOf(id)}/request`)).json();
    location.assign(`/runs/${encodeURIComponent((await tool('start_run', {...again, question: wish.value, changes_of: `${id}/${whose || 'winner'}`})).run_id)}`);
  }));
  const counted = file => `${file.change} ${file.path}${file.was ? ` (was ${file.was})` : ''}${file.uncounted ? '' : file.added === undefined || file.added === null ? ' binary' : ` +${file.added} −${file.removed || 0}`}`;
  const names = {clean: 'You can apply these changes to your current files. Nothing has been changed yet.', conflicts: 'Some of these files have changed in the meantime. Nothing was applied. You can apply the changes to the other files.',
    unchanged: 'Your files already have these changes.'};
  go.addEventListener('click', doing(go, note, async () => {
    const added = others.filter(box => box.checked), picked = [...boxes, ...others].flatMap(chosen), paths = picked.map(box => box.value);
    if (!paths.length) return say(note, 'Choose at least one file.', true);
    const part = added.length || stuck.length || picked.length < boxes.length || picked.some((box, k) => box !== boxes[k]);
    const done = await tool('apply_result', {run_id: id, dry_run: false, ...of, ...(part ? {paths} : {})});
    if (done.status === 'conflicts') { await changes(run, into, note, wish, whose); into.focus(); return; }
    say(note, `${done.status}: ${done.next_step}`);
    if (done.status === 'applied') into.replaceChildren();
  }));
  const choice = h('select', {onchange: () => changes(run, into, note, wish, choice.value).then(() => into.querySelector('select').focus(), error => failed(note, error))},
    result ? h('option', {value: '', selected: !whose}, 'the run\'s result') : null, changed.map(one => h('option', {value: one.id, selected: one.id === whose}, `${flat(one.id, 40)}${one.dropped ? ', dropped' : ''}: ${one.changed}`)));
  const beside = {line: comment, hunk: (file, k, name) => [h('label', {class: 'box'}, (hunks.get(now(file)) || [])[k], name), file.to === null ? null
    : h('button', {type: 'button', 'aria-label': `Comment on ${now(file)} ${name}`, onclick: () => comment(file, file.hunks[k].now)}, 'Comment')]};
  into.replaceChildren(...[h('h2', {}, 'Changes in files'), choice.length > 1 ? field('Changes from', choice) : null, h('p', {}, names[plan.status] || plan.status), plan.note ? h('p', {class: 'note'}, visible(plan.note)) : null,
    h('div', {class: 'files'}, files.map((file, k) => h('label', {class: 'box'}, boxes[k], bdi(counted(file))))),
    plan.more_files ? h('p', {class: 'note'}, `and ${plan.more_files} more files, which you can apply only together with all others`) : null,
    (plan.conflicts || []).map(one => h('p', {class: 'bad'}, bdi(`${one.path}: ${one.reason}`))),
    h('div', {class: 'files'}, (plan.left_out || []).map((one, k) => h('label', {class: 'box'}, others[k], 'left out: ', bdi(`${one.path}: ${one.reason}`)))),
    files.some(free) || others.length ? go : null, text ? patch(text, beside) : null, field('Describe what should change. To comment on a line, click it or write FILE:LINE: comment.', wish, 'whole'), ask_for].flat(Infinity).filter(Boolean));
  say(note, '');
}

const named = /^\/runs\/(.+)$/.exec(location.pathname);
if (named) one(decodeURIComponent(named[1]));
else if (location.pathname === '/new') start();
else if (location.pathname === '/compare') against(new URLSearchParams(location.search).getAll('run'));
else list();
