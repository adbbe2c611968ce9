// Draws what many runs come to; every plot is beside or above the table of its figures.
const spoken = name => name.replace(/_/g, ' ');
const totals = counts => Object.values(counts).reduce((sum, one) => sum + one, 0);

function draw(all, into) {
  const {figures, marked, states: ended} = all, count = (number, word) => `${number.toLocaleString('en')} ${word}${number === 1 ? '' : 's'}`;
  document.title = 'Statistics · massgen';
  const section = (heading, ...body) => h('section', {}, h('h2', {}, heading), body);
  const scrolled = (name, table) => h('div', {class: 'wide', tabindex: 0, role: 'region', 'aria-label': name}, table);
  const table = (name, heads, rows) => scrolled(name, h('table', {class: 'stats'},
    h('thead', {}, h('tr', {}, heads.map((head, place) => h('th', {scope: 'col', class: place && !head.wide ? 'num' : null}, head.wide || head)))),
    h('tbody', {}, rows.map(([first, ...cells]) => h('tr', {}, h('th', {scope: 'row'}, bdi(first)), cells)))));
  const num = text => h('td', {class: 'num'}, text), cell = (...parts) => h('td', {}, parts);
  const told = counts => ended.concat(Object.keys(counts)).filter((name, place, names) => counts[name] && names.indexOf(name) === place)
    .map(name => `${counts[name].toLocaleString('en')} ${spoken(name)}`).join(', ') || 'none';
  // Where a share lies, with the interval in which it lies in truth.
  const interval = share => share.of ? s('svg', {viewBox: '0 0 150 20', 'aria-hidden': 'true'}, s('line', {class: 'axis', x1: 3, x2: 147, y1: 10, y2: 10}),
    s('line', {class: 'span', x1: 3 + 144 * share.low, x2: 3 + 144 * share.high, y1: 10, y2: 10}),
    s('circle', {class: 'at', cx: 3 + 144 * share.count / share.of, cy: 10, r: 4.5})) : null;
  const shareOf = share => h('td', {class: 'share'}, share.of ? share.told : h('span', {class: 'dim'}, 'none yet'), interval(share));
  const stacked = states => {
    let x = 0;
    return s('svg', {viewBox: '0 0 150 20', 'aria-hidden': 'true'}, ended.filter(name => states[name]).map(name => {
      const wide = 150 * states[name] / totals(states), part = s('rect', {class: `s-${name}`, x, y: 4, width: Math.max(1, wide - 1), height: 12, rx: 2});
      x += wide;
      return part;
    }));
  };
  const key = states => h('p', {class: 'key'}, ended.filter(name => states[name]).map(name =>
    h('span', {}, h('span', {class: `dot s-${name}`, 'aria-hidden': 'true'}), spoken(name))));

  function header() {
    return h('header', {}, h('h1', {}, count(figures.runs, 'run')), h('div', {class: 'facts'}, all.filters.length ? all.filters.map(one => h('span', {}, bdi(one))) : h('span', {}, 'all finished runs')),
      all.unread ? h('p', {class: 'note'}, `No readable record exists for ${count(all.unread, 'other run')}.`) : null);
  }
  function overall() {
    const one = (name, value) => h('div', {}, h('strong', {}, value), name);
    return section('Overall', h('div', {class: 'big'}, one('how they ended', told(figures.states)), one('cost', figures.money.told),
      one('tokens', figures.tokens.toLocaleString('en')), one('working time', clock(figures.seconds)), one('median run duration', clock(figures.median_seconds))),
    figures.money.unknown ? h('p', {class: 'note'}, `A plus sign after a cost means that it excludes calls whose price is unknown (in ${count(figures.money.unknown, 'run')}).`) : null,
    figures.money.estimated ? h('p', {class: 'dim'}, `The cost of ${count(figures.money.estimated, 'run')} is an estimate.`) : null,
    table('Agreement', ['Agreement', 'Runs'], Object.entries(figures.outcomes).sort((a, b) => b[1] - a[1]).map(([name, number]) => [spoken(name), num(number.toLocaleString('en'))])),
    table('Votes', ['Votes', {wide: 'How often'}], [['Winner\'s first answer won', shareOf(figures.first_answer)], ['First vote decided the outcome', shareOf(figures.first_ballot)], ['An agent dissented', shareOf(marked.dissent)]]));
  }
  function days() {
    // Every day from the first to the last, also those without runs; months where there are many.
    const known = Object.fromEntries(all.days.map(day => [day.day, day])), first = Date.parse(all.days[0].day), last = Date.parse(all.days[all.days.length - 1].day);
    const length = (last - first) / 864e5 + 1, monthly = length > 62, columns = new Map();
    for (let at = first; at <= last; at += 864e5) {
      const day = new Date(at).toISOString().slice(0, 10), name = monthly ? day.slice(0, 7) : day;
      if (!columns.has(name)) columns.set(name, {});
      for (const [state, number] of Object.entries((known[day] || {states: {}}).states)) columns.get(name)[state] = (columns.get(name)[state] || 0) + number;
    }
    const names = [...columns.keys()], most = Math.max(...[...columns.values()].map(totals)), whole = innerWidth < 620 ? 340 : 1000, wide = whole / names.length, tall = 120;
    const picture = s('svg', {class: 'days', viewBox: `0 0 ${whole} ${tall + 34}`, role: 'img', 'aria-label': `Runs by ${monthly ? 'month' : 'day'}; the table below has the figures.`},
      s('line', {class: 'grid', x1: 0, x2: whole, y1: tall + 12, y2: tall + 12}), s('text', {class: 'd', x: 0, y: 10}, `maximum: ${most} per ${monthly ? 'month' : 'day'}`),
      names.map((name, place) => {
        let y = tall + 12;
        return ended.filter(state => columns.get(name)[state]).map(state => {
          const high = (tall - 6) * columns.get(name)[state] / most;
          y -= high;
          return s('rect', {class: `s-${state}`, x: place * wide + wide * .1, y, width: Math.min(60, wide * .8), height: Math.max(1, high - 1)}, s('title', {}, `${name}: ${told(columns.get(name))}`));
        });
      }), s('text', {class: 'd', x: 0, y: tall + 28}, names[0]), names.length > 1 ? s('text', {class: 'd', x: whole, y: tall + 28, 'text-anchor': 'end'}, names[names.length - 1]) : null);
    return section(`Runs by ${monthly ? 'month' : 'day'}`, picture, key(figures.states), h('details', {}, h('summary', {}, 'As a table'),
      table('Runs by day', ['Day, UTC', {wide: 'Runs'}, 'Cost'], all.days.map(day => [day.day, cell(told(day.states)), num(day.money.told)]))));
  }
  const teams = () => section('By team', table('By team', ['Models', 'Runs', {wide: 'How they ended'}, {wide: 'Agreement'}, 'Cost', 'Median time'], all.teams.map(({name, figures: of}) =>
    [name, num(of.runs.toLocaleString('en')), cell(told(of.states), stacked(of.states)), cell(told(of.outcomes)), num(of.money.told), num(clock(of.median_seconds))])), key(figures.states));
  function models() {
    return section('By model', h('p', {class: 'dim'}, 'A dot shows what was counted; the line around it covers the true value in 95 of 100 cases.'),
      table('By model', ['Model', 'Runs', 'Answered', 'Dropped', {wide: 'Wins against other models'}, {wide: 'Votes for the winner'}, 'Cost', 'Tokens'], all.models.map(one =>
        [one.model, num(one.runs.toLocaleString('en')), num(`${one.answered} of ${one.agents}`), num(String(one.dropped)), shareOf(one.wins), shareOf(one.with_winner), num(one.money.told), num(one.tokens.toLocaleString('en'))])));
  }
  function agreement() {
    const names = [...new Set(all.agreement.flatMap(one => one.models))].sort(), pairs = new Map(all.agreement.map(one => [JSON.stringify(one.models), one.agreed]));
    if (!names.length) return null;
    const of = (a, b) => pairs.get(JSON.stringify([a, b])) || pairs.get(JSON.stringify([b, a]));
    return section('Who votes alike', h('p', {class: 'dim'}, 'How often two agents with these models voted for the same answer, or for answers with the same content, in runs where both voted. Cells are shaded if they cover five or more shared votes; darker means more agreement.'),
      scrolled('Who votes alike', h('table', {class: 'stats matrix'}, h('thead', {}, h('tr', {}, h('td'), names.map(name => h('th', {scope: 'col'}, bdi(name))))),
        h('tbody', {}, names.map(a => h('tr', {}, h('th', {scope: 'row'}, bdi(a)), names.map(b => {
          const share = of(a, b);
          return h('td', {style: share && share.of >= 5 ? {background: `color-mix(in srgb, var(--c0) ${Math.round(30 * share.count / share.of)}%, var(--card))`} : {}}, share ? share.told : h('span', {class: 'dim'}, 'never met'));
        })))))));
  }
  function marks() {
    const rows = [['Answers marked right', shareOf(marked.answers)], ...Object.entries(marked.by_outcome).map(([name, share]) => [`after ${spoken(name)}`, shareOf(share)]),
      ['Dissent that was right', shareOf(marked.dissent_right)], ...all.models.filter(one => one.dissent_right.of).map(one => [`dissent by ${one.model}`, shareOf(one.dissent_right)])];
    return section('What proved right', marked.answers.of || marked.dissent_right.of ? table('What proved right', ['Share of marked runs', {wide: 'How often'}], rows)
      : h('p', {class: 'dim'}, 'No runs are marked yet. To mark one, run ', h('code', {}, 'massgen mark RUN right'), ' or ', h('code', {}, 'wrong'), '.'));
  }
  into.replaceChildren(...[header(), ...figures.runs ? [overall(), days(), teams(), models(), agreement(), marks()] : []].filter(Boolean));
}
addEventListener('beforeprint', () => document.querySelectorAll('details').forEach(one => { one.dataset.was = one.open; one.open = true; }));
addEventListener('afterprint', () => document.querySelectorAll('details').forEach(one => { one.open = one.dataset.was === 'true'; }));
