// Lanes of agents over time. Where a moment lies on the line is told by the data; here are only pixels.
const colour = place => `var(--c${place % 10})`;
function placeOf(line, at) {
  const stops = line.places;
  if (stops.length < 2 || at <= stops[0].at) return 0;
  for (let k = 1; k < stops.length; k++)
    if (at <= stops[k].at) {
      const a = stops[k - 1], b = stops[k];
      return a.place + (b.at > a.at ? (b.place - a.place) * (at - a.at) / (b.at - a.at) : 0);
    }
  return 1;
}
function timeAt(line, place) {
  const stops = line.places;
  for (let k = 1; k < stops.length; k++)
    if (place <= stops[k].place) {
      const a = stops[k - 1], b = stops[k];
      return a.at + (b.place > a.place ? (b.at - a.at) * (place - a.place) / (b.place - a.place) : 0);
    }
  return line.end;
}
// A moment as it is told: the shorter the run, the finer.
const timed = (line, seconds) => line.end < 60 ? `${seconds.toFixed(line.end < 1 ? 2 : 1)}\u00a0s` : clock(seconds);
// Marks of a lane that would lie on each other are moved apart, within the line.
function spread(marks, apart, from, to) {
  marks.sort((a, b) => a.x - b.x);
  for (let k = 1; k < marks.length; k++) marks[k].x = Math.max(marks[k].x, marks[k - 1].x + apart);
  let most = to;
  for (let k = marks.length - 1; k >= 0 && marks[k].x > most; k--) { marks[k].x = Math.max(from, most); most -= apart; }
}
// The lanes in their order: each agent, below it the runs that it started, and where one is opened, the agents of that.
function lanesOf(run, opened, offset = 0, depth = 0, prefix = '') {
  const lanes = [];
  const add = nested => {
    lanes.push({nested, prefix, depth: depth + 1, offset, run});
    if (nested.run && opened.has(nested.run_id)) {
      const began = nested.run.started_at === null || run.started_at === null ? nested.start : nested.run.started_at - run.started_at;
      lanes.push(...lanesOf(nested.run, opened, offset + began, depth + 1, nested.run_id + '/'));
    }
  };
  run.agents.forEach((agent, place) => {
    lanes.push({agent, place, prefix, depth, offset, run});
    run.nested.filter(nested => nested.agent === agent.name).forEach(add);
  });
  run.nested.filter(nested => nested.agent === null).forEach(add);
  return lanes;
}
const short = (text, most) => flat(text, Math.max(2, most));

function timeline(run, width, opened, onAnswer) {
  const lanes = lanesOf(run, opened), phone = width < 620, line = run.time_line;
  const left = phone ? 8 : 178, right = 22, top = 24, height = phone ? 58 : lanes.length > 6 ? 42 : 52;
  const bottom = top + height * lanes.length, whole = bottom + 22;
  const X = at => left + (width - left - right) * placeOf(line, at);
  const Y = k => top + height * k + (phone ? 36 : height / 2);
  const back = [], bars = [], arrows = [], names = [], front = [], answers = {};
  const mark = (at, made) => { made.dataset.at = at; return made; };
  const title = text => s('title', {}, flat(text, 400));

  const longest = Math.max(...line.idle.map(([from, to]) => to - from));
  for (const [from, to] of line.idle) {
    back.push(s('rect', {class: 'idle', x: X(from), y: top - 8, width: Math.max(1, X(to) - X(from)), height: bottom - top + 8},
      title(`No agent worked for ${clock(to - from)}; the gap is shortened`)),
    to - from === longest ? s('text', {class: 'd', x: (X(from) + X(to)) / 2, y: top - 11, 'text-anchor': 'middle'}, `⋯ ${clock(to - from)}`) : '');
  }
  for (const share of phone ? [0, .5, 1] : [0, .25, .5, .75, 1]) {
    const x = left + (width - left - right) * share, at = timeAt(line, share);
    back.push(s('line', {class: 'grid', x1: x, x2: x, y1: top - 6, y2: bottom}),
      s('text', {class: 'd', x, y: whole - 6, 'text-anchor': share === 0 ? 'start' : share === 1 ? 'end' : 'middle'},
        timed(line, at)));
  }
  lanes.forEach((lane, k) => {
    const y = Y(k), indent = (phone ? 8 : 6) + 14 * lane.depth;
    if (lane.nested) return nestedLane(lane, k, y, indent);
    const {agent, run: own, offset} = lane, paint = colour(lane.place), name = `${lane.place + 1} ${agent.id}`;
    const star = agent.author ? ' ★' : '', below = phone || agent.id === agent.name ? agent.model : `${agent.name} · ${agent.model}`;
    names.push(phone
      ? s('text', {class: 't', x: indent, y: y - 16, style: {fill: paint}}, short(name, 26) + star,
        s('tspan', {class: 'd', dx: 8, 'font-weight': 400}, short(below, 46 - Math.min(26, name.length))))
      : [s('text', {class: 't', x: indent, y: y - 2, style: {fill: paint}}, short(name, 21 - 2 * lane.depth) + star, title(`${agent.id} (${agent.name})`)),
        s('text', {class: 'd', x: indent, y: y + 12}, short(below, 28 - 2 * lane.depth), title(agent.model))]);
    const mine = list => list.filter(item => item.agent === agent.name);
    for (const call of mine(own.calls)) {
      const x = X(offset + call.start), strong = call.phase === 'Final answer' || call.phase === 'Judging it';
      const bad = call.ended === 'failed' || call.ended === 'lost', cut = call.ended === 'stopped';
      bars.push(mark(offset + call.start, s('rect', {x, y: y - 7, width: Math.max(2, X(offset + call.end) - x), height: 14, rx: 4,
        style: {fill: bad ? 'var(--bad)' : paint, opacity: strong ? .95 : cut ? .16 : .36}}, title(`${call.phase}: ${call.say || call.ended}`))));
    }
    for (const tool of mine(own.tools)) {
      const x = X(offset + tool.start);
      bars.push(mark(offset + tool.end, s('rect', {class: tool.failed ? 'bad' : 'tool', x, y: y + 9, width: Math.max(3, X(offset + tool.end) - x), height: 4, rx: 1},
        title(`${tool.name}${tool.failed ? ' failed' : ''} ${tool.shown}`))));
    }
    for (const check of mine(own.check_runs)) bars.push(checkBar(check, offset, y + 15));
    const marks = [
      ...mine(own.answers).map(answer => ({answer, at: offset + answer.at})),
      ...mine(own.votes).map(vote => ({vote, at: offset + vote.at})),
      ...mine(own.moments).filter(moment => moment.kind === 'failure' && (agent.dropped_at === null || moment.at < agent.dropped_at - .5)).map(moment => ({moment, at: offset + moment.at})),
      ...(agent.dropped ? [{dropped: agent.dropped, at: offset + (agent.dropped_at || 0)}] : []),
    ].map(item => ({...item, x: X(item.at)})).sort((a, b) => a.at - b.at);
    spread(marks, 21, left, width - right + 10);
    for (const item of marks) {
      item.late = item.x > width - 110;
      if (item.answer) answers[lane.prefix + item.answer.key] = {x: item.x, y};
      front.push(mark(item.at, signOf(item, y, paint, own, agent, onAnswer)));
    }
    lane.marks = marks;
  });
  // Checks of nobody's files, those that everybody began with.
  for (const check of run.check_runs.filter(one => one.agent === null)) bars.push(checkBar(check, 0, top - 4));
  lanes.forEach((lane, k) => (lane.marks || []).filter(item => item.vote).forEach(item => {
    const goal = answers[lane.prefix + item.vote.answer], y = Y(k);
    if (!goal) return;
    const above = goal.y < y, same = goal.y === y, bow = same ? y - 26 : (y + goal.y) / 2;
    const toY = same ? goal.y - 12 : goal.y + (above ? 13 : -13), fromY = same ? y - 9 : y + (above ? -9 : 9);
    arrows.push(mark(item.at, s('path', {class: item.vote.void_at === null ? 'arrow' : 'arrow void', style: {stroke: colour(lane.place)},
      d: `M${item.x},${fromY}C${item.x},${bow} ${goal.x},${bow} ${goal.x},${toY}`, 'marker-end': `url(#head${lane.place % 10})`})));
  }));
  for (const moment of run.moments.filter(one => one.kind === 'steering'))
    front.push(mark(moment.at, s('text', {class: 'b', x: X(moment.at), y: top - 2, 'text-anchor': 'middle'}, '▾', title(`${moment.say}: ${moment.detail}`))));
  if (run.decided_at !== null) {
    const x = X(run.decided_at);
    back.push(mark(run.decided_at, s('line', {class: 'decided', x1: x, x2: x, y1: top - 6, y2: bottom})),
      mark(run.decided_at, s('text', {class: 'g', x, y: top - 11, 'text-anchor': x > width - 60 ? 'end' : 'middle'}, 'decided')));
  }
  const now = s('line', {class: 'now', y1: top - 6, y2: bottom, visibility: 'hidden'});
  const picture = s('svg', {viewBox: `0 0 ${width} ${whole}`, role: 'img', 'aria-label':
    'Timeline of the agents. A circle is an answer. A square is a vote, with an arrow to its answer; dashed votes were voided. The list below describes every event.'},
  s('defs', {}, [...Array(10).keys()].map(k => s('marker', {id: `head${k}`, viewBox: '0 0 8 8', refX: 6, refY: 4, markerWidth: 7, markerHeight: 7, orient: 'auto'},
    s('path', {d: 'M0,0L8,4L0,8z', style: {fill: `var(--c${k})`}})))), back, bars, arrows, names, front, now);
  const show = at => {
    // What comes after the moment is faint; null shows everything.
    for (const one of picture.querySelectorAll('[data-at]')) one.classList.toggle('future', at !== null && Number(one.dataset.at) > at);
    now.setAttribute('visibility', at === null ? 'hidden' : 'visible');
    if (at !== null) for (const end of ['x1', 'x2']) now.setAttribute(end, X(at));
  };
  return {picture, show};

  function checkBar(check, offset, y) {
    const x = X(offset + check.start);
    return mark(offset + check.end, s('rect', {class: {passed: 'pass', failed: 'bad', not_run: 'tool'}[check.result], x, y, height: 4, rx: 1,
      width: Math.max(3, X(offset + check.end) - x)}, title(`${check.agent === null ? 'Unchanged files: ' : ''}${check.say}`)));
  }
  function nestedLane(lane, k, y, indent) {
    const {nested, offset} = lane, x = X(offset + nested.start), until = nested.end === null ? line.end : offset + nested.end;
    names.push(s('text', {class: 'd n', x: indent, y: phone ? y - 16 : y + 4}, `↳ ${short(nested.run_id, phone ? 40 : 20)}`, title(nested.say)));
    bars.push(mark(offset + nested.start, s('rect', {x, y: y - 5, width: Math.max(3, X(until) - x), height: 10, rx: 5, class: 'tool', style: {opacity: .45}},
      title(`Nested run ${nested.run_id}: ${nested.state}. ${nested.say}`))));
  }
}
function signOf(item, y, paint, run, agent, onAnswer) {
  const {x} = item;
  if (item.answer) {
    const {answer} = item;
    return s('g', {class: 'go', onclick: () => onAnswer(run, answer.key)}, s('title', {}, `${agent.id}${whichAnswer(answer.key)}`),
      s('circle', {class: 'edge', cx: x, cy: y, r: 10, style: {fill: paint}}),
      s('text', {class: 'w', x, y: y + 4, 'text-anchor': 'middle'}, answer.label.split('.')[1]));
  }
  if (item.vote) {
    const {vote} = item;
    return s('g', {}, s('title', {}, flat(`${agent.id} votes for ${vote.answer}${vote.void_at === null ? '' : ', voided later'}: ${vote.reason.text}`, 400)),
      s('rect', {class: vote.void_at === null ? 'card' : 'card void', x: x - 8, y: y - 8, width: 16, height: 16, rx: 3, style: {stroke: paint, strokeWidth: 2}}),
      s('text', {x, y: y + 4, 'text-anchor': 'middle', 'font-size': 11}, '✓'));
  }
  if (item.dropped)
    return s('g', {}, s('text', {class: 'x', x, y: y + 5, 'text-anchor': 'middle'}, '✗'), s('text', {class: 'r', x: item.late ? x + 6 : x + 10,
      y: item.late ? y - 11 : y + 4, 'text-anchor': item.late ? 'end' : 'start'}, item.dropped.replace(/_/g, ' ')));
  return s('g', {}, s('title', {}, flat(`${item.moment.say}: ${item.moment.detail}`, 400)),
    s('circle', {class: 'card', cx: x, cy: y, r: 7, style: {stroke: 'var(--busy)'}}), s('text', {class: 'b', x, y: y + 5, 'text-anchor': 'middle'}, '!'));
}
// What the signs mean that are in this time line, and no others.
function legendOf(run) {
  const item = (words, ...sign) => h('li', {key: words}, s('svg', {viewBox: '-10 -10 20 20', 'aria-hidden': 'true'}, sign), words);
  const square = name => s('rect', {class: name, x: -7, y: -7, width: 14, height: 14, rx: 3, style: {stroke: 'var(--dim)', strokeWidth: 2}});
  const tick = () => s('text', {y: 4, 'text-anchor': 'middle', 'font-size': 11}, '✓');
  const letter = (name, text) => s('text', {class: name, y: 5, 'text-anchor': 'middle'}, text);
  const bar = (name, height, look) => s('rect', {class: name, x: -10, y: -height / 2, width: 20, height, rx: 3, style: look});
  const isVoid = run.votes.some(vote => vote.void_at !== null), failed = run.moments.some(moment => moment.kind === 'failure' && moment.agent !== null);
  return [
    run.calls.length && item('model call', bar('', 12, {fill: 'var(--dim)', opacity: .4})),
    run.answers.length && item('answer number, counted separately for each agent', s('circle', {r: 9, style: {fill: 'var(--dim)'}}), s('text', {class: 'w', y: 4, 'text-anchor': 'middle'}, '2')),
    run.votes.length && item('vote, with an arrow to its answer', square('card'), tick()),
    isVoid && item('vote voided by a newer answer', square('card void'), tick()),
    failed && item('refusal or failure', s('circle', {class: 'card', r: 7, style: {stroke: 'var(--busy)'}}), letter('b', '!')),
    run.agents.some(agent => agent.dropped) && item('dropped out', letter('x', '✗')),
    run.moments.some(moment => moment.kind === 'steering') && item('message from the caller', letter('b', '▾')),
    run.tools.length && item('tool or command', bar('tool', 4)),
    run.check_runs.length && item('check that passed', bar('pass', 4)),
    run.check_runs.some(check => check.result === 'failed') && item('check that failed', bar('bad', 4)),
    run.agents.some(agent => agent.author) && item('wrote the answer', letter('t', '★')),
  ].filter(Boolean);
}
