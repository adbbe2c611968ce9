// Draws one run as it is given; knows nothing of where the data came from. Called again with newer data of the run, it
// changes what is different: what the reader opened, chose, selected, focused or stands at stays as it is.
const pages = new WeakMap();
function draw(run, into) {
  if (!pages.has(into)) pages.set(into, pageIn(into));
  pages.get(into)(run);
}
function pageIn(into) {
  let run = null, agents, answers, line = null, chosen = null, unfolded = false;
  const who = name => h('strong', {style: {color: colour(agents[name].place)}}, bdi(agents[name].id));
  const dot = name => h('span', {class: 'dot', 'aria-hidden': 'true', style: {background: colour(agents[name].place)}});
  const ofAnswer = key => answers[key] ? [who(answers[key].agent), whichAnswer(key)] : key;
  const chip = (text, tone) => h('span', {class: `chip ${tone || ''}`}, text);
  const section = (heading, ...body) => body.flat(Infinity).some(Boolean) ? h('section', {key: heading}, h('h2', {}, heading), body) : null;
  const drawer = (summary, ...body) => h('details', {}, h('summary', {}, summary), body);
  const keyed = (key, element) => Object.assign(element, {key});
  const at = seconds => timed(run.time_line, seconds);
  const count = (number, word) => `${number} ${word}${number === 1 ? '' : 's'}`;

  function header() {
    const long = run.question.text.length > 300, question = run.question.text ? flat(run.question.text, 300) : 'Question left out';
    const {tone} = run;
    document.title = `${flat(run.question.text, 60) || run.run_id} · massgen`;
    return h('header', {}, h('h1', {}, h('bdi', {}, question)),
      long ? drawer('The whole question', plain(run.question)) : null,
      h('div', {class: 'facts'}, h('span', {class: `pill ${tone}`}, (tone === 'good' ? '✓ ' : tone === 'bad' ? '✗ ' : run.state === 'completed' ? '! ' : '') + run.headline),
        run.facts.map(fact => h('span', {}, bdi(fact))),
        run.applied_at ? h('span', {}, `applied at ${new Date(run.applied_at * 1000).toLocaleString()}; undo: `, h('code', {}, `massgen apply ${run.run_id} --undo`)) : null),
      run.cautions.length ? h('p', {class: `caution ${tone}`, key: 'cautions'}, visible(run.cautions.join(' '))) : null,
      run.story ? h('p', {class: 'story', key: 'story'}, visible(run.story)) : null,
      run.notes.map(note => h('p', {class: 'note'}, note)));
  }

  function answer() {
    const author = run.agents.find(agent => agent.author), text = run.answer ? run.answer.text : '';
    const long = text.length > 4000 || text.split('\n').length > 60;  // what led to it should not lie far below it
    const fold = () => { unfolded = !unfolded; drawAll(); };
    return [
      run.reason ? section(run.state === 'input_required' ? 'The run\'s question' : 'Why it ended', h('div', {class: run.ended ? 'bad' : ''}, plain(run.reason)), run.helps.map(help => written({text: help, left_out: 0}))) : null,
      run.answer || run.ended ? h('section', {key: 'answer'}, h('h2', {}, run.final ? 'Final answer' : run.answer ? 'Best answer so far' : 'Answer'),
        run.answer ? long ? [h('div', {class: unfolded ? 'unfolded' : 'folded'}, written(run.answer)), h('button', {type: 'button', onclick: fold, 'aria-expanded': String(unfolded)},
          unfolded ? 'Show less of the answer' : 'Show the whole answer')] : written(run.answer) : h('p', {class: 'dim'}, 'There is no answer.'),
        run.answer && author && !run.final ? h('p', {class: 'dim'}, 'By ', who(author.name), '. This isn\'t a final answer.') : null) : null,
    ];
  }

  // Made once, as it has much that the reader does; `update` brings newer data in.
  function play() {
    const holder = h('div', {class: 'line'}), legend = h('ul', {class: 'legend'}), doing = h('ul', {class: 'doing'}), opened = new Set();
    const nested = h('div'), summary = h('summary'), list = h('ol', {class: 'events'});
    const say = h('p', {class: 'say'}), time = h('span', {class: 'clock'}), go = h('button', {type: 'button', onclick: toggle}, 'Replay');
    const slide = h('input', {type: 'range', min: 0, max: 0, value: 0, step: 1, 'aria-label': 'Position in the run', oninput: () => { stop(); seek(Number(slide.value)); }});
    let show = () => {}, moments = [], last = 0, now = 0, timer = null, wide = 0;
    const sentence = moment => [moment.agent && agents[moment.agent] ? [who(moment.agent), ' '] : null, visible(moment.say),
      moment.detail ? [': ', h('span', {class: 'dim'}, bdi(moment.detail))] : null];
    function seek(to) {
      now = to;
      const moment = moments[to];
      show(moment ? moment.at : null);
      slide.value = to;
      time.textContent = at(moment ? moment.at : run.time_line.end);
      say.replaceChildren(...(moment ? [`${at(moment.at)} · `, sentence(moment)].flat(Infinity).filter(Boolean) : [h('span', {class: 'dim'}, 'The whole run. Replay the run, or step through it with the slider and the arrow keys.')]));
      slide.setAttribute('aria-valuetext', moment ? say.textContent : 'The whole run');
    }
    function stop() { clearTimeout(timer); timer = null; go.textContent = 'Replay'; }
    function step() {
      if (now >= last) return stop();
      seek(Math.min(last, now + Math.ceil(last / 500)));
      timer = setTimeout(step, Math.min(1500, Math.max(60, 15000 / last)));
    }
    function toggle() {
      if (timer !== null) return stop();
      go.textContent = 'Pause';
      seek(now >= last ? 0 : now);
      timer = setTimeout(step, 400);
    }
    function redraw() {
      const drawn = timeline(run, Math.max(300, holder.clientWidth), opened, (owner, key) => { if (owner === run) openAnswer(key); });
      holder.replaceChildren(drawn.picture);
      show = drawn.show;
      seek(now);
    }
    const openers = () => run.nested.filter(nested => nested.run).map(nested => {
      const button = h('button', {type: 'button', key: nested.run_id, 'aria-expanded': String(opened.has(nested.run_id)), onclick: () => {
        if (!opened.delete(nested.run_id)) opened.add(nested.run_id);
        button.setAttribute('aria-expanded', String(opened.has(nested.run_id)));
        redraw();
      }}, `Lanes of ${nested.run_id} (${nested.state})`);
      return button;
    });
    function update() {
      const whole = now >= last;
      moments = run.moments;
      last = moments.length;
      slide.max = last;
      now = whole ? last : Math.min(now, last);
      merge(legend, legendOf(run));
      merge(nested, openers());
      nested.className = nested.childNodes.length ? 'nested' : '';
      merge(summary, [document.createTextNode(`All ${count(last, 'event')} as text`)]);
      merge(list, moments.map(moment => h('li', {}, h('span', {class: 'clock'}, at(moment.at)), ' ', sentence(moment))));
      if (wide) redraw();
    }
    // What each agent is doing at this moment, with the newest line that it wrote.
    function write() {
      merge(doing, (run.doing || []).map(one => h('li', {key: one.agent}, dot(one.agent), who(one.agent), ' ',
        h('span', {class: 'dim'}, one.what, one.line ? ': ' : ''), h('span', {class: 'end'}, bdi(one.line)))));
    }
    new ResizeObserver(() => { if (holder.clientWidth !== wide) { wide = holder.clientWidth; redraw(); } }).observe(holder);
    addEventListener('beforeprint', () => { stop(); seek(last); });
    requestAnimationFrame(() => {
      wide = holder.clientWidth;
      redraw();
      const asked = /^#moment=(\d+)$/.exec(location.hash);
      if (asked) seek(Math.min(last, Number(asked[1])));
    });
    const made = section('How the team decided', holder, doing, h('div', {class: 'play'}, go, slide, time), say, legend,
      nested, h('details', {}, summary, list));
    made.own = true;
    return {section: made, update, write};
  }

  const oneVote = vote => h('div', {class: 'vote', key: `${vote.agent} ${vote.at}`, style: {borderColor: colour(agents[vote.agent].place)}},
    h('div', {}, who(vote.agent), ' → ', ofAnswer(vote.answer), vote.run_off ? chip('run-off') : null, vote.dissent ? chip('dissent', 'busy') : null, vote.changed_from ? chip('changed its mind') : null,
      vote.void_at === null ? null : chip(`voided at ${at(vote.void_at)}`), answers[vote.answer] && answers[vote.answer].won ? ' ★' : null),
    vote.changed_from ? h('div', {}, 'Previously for ', ofAnswer(vote.changed_from)) : null, h('div', {class: 'dim'}, plain(vote.reason)));
  function votes() {
    const standing = run.votes.filter(vote => vote.stands), rest = run.votes.filter(vote => !vote.stands);
    if (!run.votes.length) return run.agents.length > 1 ? section('Votes', h('p', {class: 'dim'}, run.final && !run.cautions.length ? 'No vote was needed.' : run.ended ? 'Nobody voted.' : 'There are no votes yet.')) : null;
    const dissent = standing.filter(vote => vote.dissent), few = 6;
    const listed = (heading, votes, told) => votes.length ? h('p', {}, heading, votes.slice(0, few).map((vote, k) => [k ? ', ' : '', who(vote.agent), ...told(vote)]),
      votes.length > few ? ` and ${votes.length - few} more` : null) : null;
    return section('Votes',
      listed('Dissent: ', dissent, vote => [' for ', ofAnswer(vote.answer)]),
      listed('Changed their minds: ', standing.filter(vote => vote.changed_from), vote => [' from ', ofAnswer(vote.changed_from), ' to ', ofAnswer(vote.answer)]),
      run.decided.map(line => h('p', {class: 'dim'}, line)),
      standing.map(oneVote),
      rest.length ? drawer(`${count(rest.length, 'vote')} not counted`, rest.map(oneVote)) : null);
  }

  function sums() {
    const {sums: all} = run, bars = all.measure === 'cost' ? 'of the cost' : 'of the tokens';
    const group = (name, rows, paint) => rows.length ? h('tbody', {},
      h('tr', {class: 'h'}, h('th', {scope: 'rowgroup'}, name), h('td', {}, h('span', {class: 'sr'}, `Share ${bars}`)),
        ['Cost', 'Tokens', 'Calls'].map(head => h('th', {scope: 'col'}, head))),
      rows.map((row, k) => h('tr', {}, h('th', {scope: 'row'}, bdi(row.name)),
        h('td', {}, row.share ? h('i', {style: {width: `${Math.max(2, 100 * row.share)}%`, background: paint(k)}}) : null),
        [row.cost, row.tokens, String(row.calls)].map(cell => h('td', {}, cell))))) : null;
    return section('Cost and tokens', h('table', {class: 'sums'},
      h('colgroup', {}, ['n', '', 'u', 'k', 'c'].map(name => h('col', {class: name}))),
      group('By agent', all.by_agent, k => k < run.agents.length ? colour(k) : ''),
      group('By model', all.by_model, () => ''), group('By phase', all.by_phase, () => '')),
      all.notes.map(note => h('p', {class: 'dim'}, note)));
  }

  const votesFor = key => run.votes.filter(vote => vote.stands && vote.answer === key).length;
  function openAnswer(key) {
    const found = [...into.querySelectorAll('details')].find(one => one.key === `answer ${key}`);
    if (!found) return;
    found.open = true;
    found.scrollIntoView({block: 'nearest'});
    found.querySelector('summary').focus();
  }
  function answerList() {
    const options = run.answers.map(one => [one.key, `${flat(agents[one.agent].id, 30)}${whichAnswer(one.key)}`]);
    if (run.final && run.answer) options.push(['final', 'the final answer']);
    const list = run.answers.map(one => {
      const checked = run.checks ? run.checks.checked.filter(other => other.answer === one.key) : [];
      const words = [dot(one.agent), who(one.agent), whichAnswer(one.key), one.won ? ' ★' : '', ` · ${at(one.at)}`, votesFor(one.key) ? ` · ${count(votesFor(one.key), 'vote')}` : '',
        one.changes ? chip(one.changes.say) : null, checked.map(verdict)];
      return keyed(`answer ${one.key}`, drawer(words, written(one.text), changed(one.changes), checked.map(checkRows), one.earlier && !run.redacted
        ? keyed('against', drawer(`What changed against ${agents[one.agent].id}${whichAnswer(one.earlier)}`, later(() => compared(answers[one.earlier], one)))) : null));
    });
    return section('Answers', options.length > 1 && !run.redacted ? compare(options) : null, list);
  }
  // Drawn when its drawer is opened for the first time.
  function later(make) {
    const holder = h('div', {own: true});
    requestAnimationFrame(() => holder.parentElement.addEventListener('toggle', () => holder.replaceChildren(...make().flat(Infinity).filter(Boolean)), {once: true}));
    return holder;
  }
  function compare(options) {
    const won = run.answers.find(one => one.won), first = won ? (won.earlier || won.key) : options[0][0];
    const second = options[options.length - 1][0] === first ? options[0][0] : options[options.length - 1][0];
    const choice = (label, chosen) => h('select', {'aria-label': label, onchange: update},
      options.map(([key, words]) => h('option', {value: key, selected: key === chosen}, words)));
    const [before, after] = chosen || [first, second], holder = h('div', {own: true});
    const from = choice('Compare this answer', before), to = choice('with this answer', after);
    const one = key => key === 'final' ? {text: run.answer, changes: run.changes} : answers[key];
    function update() {
      chosen = [from.value, to.value];
      holder.replaceChildren(...compared(one(from.value), one(to.value)).flat(Infinity).filter(Boolean));
    }
    const box = keyed('compare', drawer('Compare two answers', h('div', {class: 'compare'}, from, h('span', {}, '→'), to), holder));
    box.addEventListener('toggle', update, {once: true});
    return box;
  }

  function compared(before, after) {
    const text = changes => changes && changes.patch ? run.patches[changes.patch] : {text: '', left_out: 0};
    const [a, b] = [text(before.changes), text(after.changes)];
    return [difference(before.text.text, after.text.text), a.text || b.text ? [h('h3', {}, 'In files'), filesCompared(a.text, b.text)] : null,
      [before.text, after.text, a, b].some(one => one.left_out) ? h('p', {class: 'note'}, 'Only the parts shown here were compared.') : null];
  }

  // -- files and checks --
  function changed(changes, open) {
    if (!changes) return null;
    const diff = changes.patch ? run.patches[changes.patch] : null, shortly = open && diff && diff.text.length < 20000;
    return [changes.files.length ? h('ul', {class: 'events'}, changes.files.map(file => h('li', {}, h('span', {class: 'dim'}, file.kind), ' ', h('code', {}, bdi(file.path)),
      file.earlier_path ? [' from ', h('code', {}, bdi(file.earlier_path))] : null, ' ', file.added === null ? h('span', {class: 'dim'}, 'binary')
        : [h('span', {class: 'good'}, `+${file.added}`), ' ', h('span', {class: 'bad'}, `−${file.removed}`)]))) : open ? h('p', {class: 'dim'}, changes.say) : null,
    changes.files.length && changes.more ? h('p', {class: 'dim'}, `and ${count(changes.more, 'more file')}`) : null,
    changes.notes.map(note => h('p', {class: 'note'}, visible(note))),
    diff && diff.text ? shortly ? patch(diff.text) : keyed(`patch ${changes.patch}`, drawer('The patch', later(() => patch(diff.text)))) : null, diff ? leftOut(diff) : null];
  }
  const RESULT = {passed: ['✓', 'good', 'passed'], failed: ['✗', 'bad', 'failed'], not_run: ['–', 'busy', 'not run']};
  const resultOf = result => h('span', {class: RESULT[result][1]}, `${RESULT[result][0]} ${RESULT[result][2]}`);
  function verdict(checked) {
    const failed = checked.checks.filter(check => check.result === 'failed' && !check.flaky && !check.cure).length;
    return checked.problem ? chip('could not be checked', 'busy') : !checked.checks.length ? null
      : failed ? chip(`✗ ${failed} of ${count(checked.checks.length, 'check')} failed`, 'bad')
        : checked.checks.every(check => check.result === 'passed') ? chip(`✓ ${count(checked.checks.length, 'check')} passed`, 'good') : chip('– some checks gave no result', 'busy');
  }
  function onBase(check) {
    const base = run.checks.checked.find(checked => checked.subject === 'base');
    return base && base.checks.find(one => one.command === check.command);
  }
  function besideBase(checked, check) {
    const base = checked.subject === 'base' ? null : onBase(check), passed = check.result === 'passed' && base && base.result === 'passed';
    return [check.tests === null ? null : h('span', {class: 'dim'}, ` · ${count(check.tests, 'test')}, according to the check${base && base.tests !== null ? `; ${base.tests} on the unchanged files` : ''}`),
      check.flaky ? chip('flaky: both passed and failed on the same files', 'busy') : null,
      check.warnings.map(warning => h('p', {class: 'note'}, 'Warning: ', bdi(warning))),
      check.cure ? h('p', {class: 'note'}, 'This check can\'t run in this environment. To fix that: ', bdi(check.cure)) : null,
      passed && base.lines && base.lines.text && check.lines && base.lines.text !== check.lines.text ? ['On the unchanged files: ', h('pre', {class: 'lines', tabindex: 0}, visible(base.lines.text))] : null];
  }
  function checkRows(checked) {
    return [checked.problem ? h('p', {class: 'note'}, 'Could not be checked: ', bdi(checked.problem)) : !checked.checks.length ? h('p', {class: 'dim'}, 'No files changed, so there is nothing to check.') : null,
      h('ul', {class: 'events'}, checked.checks.map(check => h('li', {}, resultOf(check.result), ' ', h('code', {}, bdi(check.command)),
        h('span', {class: 'dim'}, ` · ${check.how} · ${check.seconds.toFixed(1)} s`),
        check.failed_before && checked.subject !== 'base' ? chip(check.result === 'passed' ? 'failed before' : 'also failed before') : null,
        check.own ? ['; with its own versions of protected files: ', resultOf(check.own)] : null,
        check.lines ? check.lines.text ? h('pre', {class: 'lines', tabindex: 0}, visible(check.lines.text)) : leftOut(check.lines) : null, besideBase(checked, check)))),
      checked.restored.length ? h('p', {class: 'dim'}, 'The answer changed these protected files; the checks used their original versions: ', checked.restored.map((path, k) => [k ? ', ' : '', h('code', {}, bdi(path))])) : null];
  }
  function checks() {
    if (!run.checks) return null;
    const subject = checked => checked.subject === 'base' ? 'The unchanged files' : checked.subject === 'final' ? ['Final files, by ', who(checked.agent)] : checked.subject === 'unfinished' ? ['What ', who(checked.agent), ' left unfinished'] : ofAnswer(checked.answer);
    return section('Checks', h('p', {}, run.checks.policy), run.checks.decided.map(line => h('p', {class: 'note'}, bdi(line))),
      run.checks.checked.map(checked => keyed(`${checked.subject} ${checked.answer} ${checked.agent}`, drawer([subject(checked), verdict(checked) || chip('nothing to check')], checkRows(checked)))));
  }

  function tests() {
    if (!run.tests) return null;
    const columns = run.answers.filter(one => run.tests.tests.some(test => test.passed.includes(one.key) || test.failed.includes(one.key)));
    const cell = (test, key) => h('td', {}, test.passed.includes(key) ? resultOf('passed') : test.failed.includes(key) ? resultOf('failed') : null);
    const code = (what, text) => [h('p', {class: 'dim'}, what), text.text ? h('pre', {class: 'lines', tabindex: 0}, visible(text.text)) : leftOut(text)];
    return section('The team\'s tests', run.tests.say.map(line => h('p', {}, visible(line))), h('div', {class: 'wide'}, h('table', {class: 'tests'},
      h('thead', {}, h('tr', {}, h('th', {scope: 'col'}, 'Test'), columns.map(one => h('th', {scope: 'col'}, who(one.agent), whichAnswer(one.key), one.won ? ' ★' : '')))),
      h('tbody', {}, run.tests.tests.map((test, k) => h('tr', {class: test.void ? 'dim' : ''}, h('th', {scope: 'row'},
        keyed(`test ${k}`, drawer([bdi(test.title || 'Test left out'), ' · by ', who(test.by)], code('The script', test.script), code('Expected output', test.expected))),
        test.void ? h('div', {}, `not counted: ${test.void}`) : null), columns.map(one => cell(test, one.key))))))));
  }

  function trouble() {
    const lines = kind => run.moments.filter(moment => moment.kind === kind).map(moment => h('li', {},
      h('span', {class: 'clock'}, at(moment.at)), ' ', moment.agent && agents[moment.agent] ? [who(moment.agent), ' '] : null,
      visible(moment.say), moment.detail ? [': ', h('span', {class: 'dim'}, bdi(moment.detail))] : null));
    const failures = lines('failure'), steering = lines('steering');
    return [failures.length ? section('Failures and refusals', h('ol', {class: 'events'}, failures)) : null,
      steering.length ? section('Steering', h('ol', {class: 'events'}, steering)) : null];
  }

  function shown() {
    return section('What each agent saw', run.agents.map(agent => {
      const sent = run.shown.filter(one => one.agent === agent.name);
      return sent.length ? keyed(agent.name, drawer([dot(agent.name), who(agent.name), ` · ${count(sent.length, 'time')}`], h('ol', {class: 'events'}, sent.map(one => h('li', {},
        h('span', {class: 'clock'}, at(one.at)), ` ${one.what}`,
        one.ballot.length ? h('ul', {}, one.ballot.map(entry => h('li', {}, `${entry.name} was `, ofAnswer(entry.answer)))) : one.what.startsWith('Round') ? ': the question, no answers' : null,
        one.texts.map(plain)))))) : null;
    }));
  }

  function tools() {
    if (!run.tools.length) return null;
    return section('Tools and commands', drawer(count(run.tools.length, 'call'), h('ol', {class: 'events'}, run.tools.map(tool => h('li', {},
      h('span', {class: 'clock'}, at(tool.start)), ' ', agents[tool.agent] ? [who(tool.agent), ' '] : null, h('code', {}, visible(tool.name)),
      tool.failed ? chip('failed', 'bad') : null, tool.shown ? [' ', h('span', {class: 'dim'}, bdi(tool.shown))] : null)))));
  }

  function nestedRuns() {
    return section('Nested runs', run.nested.map(nested => keyed(nested.run_id, drawer([h('strong', {}, nested.run_id), ` · ${nested.state}`,
      nested.agent && agents[nested.agent] ? [' · started by ', who(nested.agent)] : null],
    h('p', {class: 'plain'}, visible(nested.say)), nested.run && nested.run.answer ? written(nested.run.answer) : h('p', {class: 'dim'}, 'Its answer is not included.')))));
  }

  const about = () => h('footer', {class: 'facts'}, h('span', {}, run.run_id),
    run.started_at === null ? null : h('time', {datetime: new Date(run.started_at * 1000).toISOString()}, new Date(run.started_at * 1000).toLocaleString()));

  function drawAll() {
    agents = Object.fromEntries(run.agents.map((agent, place) => [agent.name, {...agent, place}]));
    answers = Object.fromEntries(run.answers.map(answer => [answer.key, answer]));
    line = line || play();
    merge(into, [header(), answer(), line.section.parentNode === into ? h('section', {key: line.section.key}) : line.section, h('div', {class: 'two'}, votes(), sums()), answerList(),
      run.changes ? section('Changes in files', changed(run.changes, true)) : null, checks(), tests(),
      trouble(), shown(), tools(), nestedRuns(), h('section', {}, about())].flat(Infinity).filter(Boolean));
    line.update();
  }

  return newer => {
    const before = run;
    run = newer;
    // What the agents write changes much more often than the rest.
    if (!before || Object.keys(run).some(name => name !== 'doing' && run[name] !== before[name])) drawAll();
    line.write();
  };
}
// On paper everything is open.
addEventListener('beforeprint', () => document.querySelectorAll('details').forEach(one => { one.dataset.was = one.open; one.open = true; }));
addEventListener('afterprint', () => document.querySelectorAll('details').forEach(one => { one.open = one.dataset.was === 'true'; }));
