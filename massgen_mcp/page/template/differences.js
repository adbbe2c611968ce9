// What changed from one text to another: lines first, then words within changed lines.
const MOST = 4e6;
function common(a, b) {
  // Pairs of places [i, j] of a longest common subsequence; null where the texts are too long to find it.
  let head = 0, tail = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const n = a.length - head - tail, m = b.length - head - tail, wide = m + 1;
  if (n * m > MOST) return null;
  const best = new Uint32Array((n + 1) * wide);
  for (let i = n - 1; i >= 0; i--)
    for (let j = m - 1; j >= 0; j--)
      best[i * wide + j] = a[head + i] === b[head + j] ? best[(i + 1) * wide + j + 1] + 1
        : Math.max(best[(i + 1) * wide + j], best[i * wide + j + 1]);
  const pairs = [];
  for (let k = 0; k < head; k++) pairs.push([k, k]);
  for (let i = 0, j = 0; i < n && j < m;) {
    if (a[head + i] === b[head + j]) pairs.push([head + i++, head + j++]);
    else if (best[(i + 1) * wide + j] >= best[i * wide + j + 1]) i++;
    else j++;
  }
  for (let k = tail; k > 0; k--) pairs.push([a.length - k, b.length - k]);
  return pairs;
}
function edits(a, b) {
  // Runs of {same, gone, come}, each a list of pieces.
  const pairs = common(a, b) || [], runs = [];
  let i = 0, j = 0;
  for (const [x, y] of [...pairs, [a.length, b.length]]) {
    if (x > i || y > j) runs.push({gone: a.slice(i, x), come: b.slice(j, y)});
    if (x < a.length) {
      const last = runs[runs.length - 1];
      if (last && last.same) last.same.push(a[x]); else runs.push({same: [a[x]]});
    }
    i = x + 1; j = y + 1;
  }
  return runs;
}
const words = text => text.split(/(\s+|[^\p{L}\p{N}_]+)/u).filter(Boolean);
function changedLines(gone, come) {
  const runs = edits(words(gone.join('\n')), words(come.join('\n')));
  const kept = runs.reduce((sum, run) => sum + (run.same ? run.same.join('').trim().length : 0), 0);
  if (kept * 3 < Math.min(gone.join('').length, come.join('').length) || !gone.length || !come.length)
    return [...gone.map(line => row('−', 'Removed: ', line)), ...come.map(line => row('+', 'Added: ', line))];
  return [h('div', {}, marked('±', 'Changed: '), runs.map(run => run.same ? visible(run.same.join(''))
    : [run.gone.length ? h('del', {}, visible(run.gone.join(''))) : null, run.come.length ? h('ins', {}, visible(run.come.join(''))) : null]))];
}
const marked = (mark, word) => [h('span', {class: 'sign', 'aria-hidden': 'true'}, mark), h('span', {class: 'sr'}, word)];
const row = (mark, word, line) => h('div', {}, marked(mark, word), mark === '−' ? h('del', {}, visible(line)) : mark === '+' ? h('ins', {}, visible(line)) : visible(line));
function difference(before, after, code = /^\s*(```|~~~)/m.test(before + '\n' + after)) {
  if (before === after) return h('p', {class: 'dim'}, 'They are identical.');
  const rows = [];
  for (const run of edits(before.split('\n'), after.split('\n'))) {
    if (!run.same) rows.push(...changedLines(run.gone, run.come));
    else if (run.same.length < 8) rows.push(...run.same.map(line => row(' ', '', line)));
    else rows.push(
      ...run.same.slice(0, 2).map(line => row(' ', '', line)),
      h('div', {class: 'same'}, `${run.same.length - 4} unchanged lines`),
      ...run.same.slice(-2).map(line => row(' ', '', line)));
  }
  return h('div', {class: code ? 'diff code' : 'diff'}, rows);
}
// The files of a unified diff as git prints it. `from` is a name in the base, null for a new file; a hunk begins at the line `at` there, and at `now`
// in the new file.
// `modes`: as git writes them, before and after.
function filesOf(text) {
  const files = [], bare = name => name.replace(/\t$/, '').replace(/^"(.*)"$/, '$1').replace(/^[ab]\//, '');
  let file = null, hunk = null, old = 0, young = 0, runs = null, found;
  for (const line of text.split('\n')) {
    if (hunk && (old > 0 || young > 0 || line[0] === '\\')) {
      hunk.lines.push(line);
      if (line[0] === ' ' || line[0] === '-') old--;
      if (line[0] === ' ' || line[0] === '+') young--;
    } else if (line.startsWith('diff --git ')) {
      const half = bare(line.slice(11, 11 + (line.length - 12) / 2));
      hunk = null;
      files.push(file = {from: half, to: half, modes: [], hunks: [], notes: [], runs});
      runs = null;
    } else if ((found = /^# The next file runs by itself: (.*)$/.exec(line))) runs = found[1];
    else if (!file) continue;
    else if ((found = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/.exec(line))) {
      [old, young] = [found[2], found[4]].map(count => count === undefined ? 1 : Number(count));
      file.hunks.push(hunk = {at: Number(found[1]) + (old ? 0 : 1), now: Number(found[3]) + (young ? 0 : 1), lines: []});
    } else if ((found = /^(?:---|rename from) (.*)/.exec(line))) file.from = found[1] === '/dev/null' ? null : bare(found[1]);
    else if ((found = /^(?:\+\+\+|rename to) (.*)/.exec(line))) file.to = found[1] === '/dev/null' ? null : bare(found[1]);
    else if ((found = /^(old|new|new file|deleted file) mode (\d+)$/.exec(line))) {
      if (found[1] === 'new file') file.from = null;
      if (found[1] === 'deleted file') file.to = null;
      file.modes[found[1].startsWith('new') ? 1 : 0] = found[2];
    } else if ((found = /^index \S+ (\d+)$/.exec(line))) file.modes = [found[1], found[1]];
    else if (/^(GIT binary|literal|delta|Binary|[A-Za-z][!-~]+$)/.test(line)) file.notes.push(line);
  }
  return files;
}
const nameOf = file => file.to === null ? file.from : file.from === null || file.from === file.to ? file.to : `${file.from} → ${file.to}`;
const KIND = {100644: '', 100755: 'executable', 120000: 'a symbolic link', 160000: 'a separate repository'};
// What its lines do not show, in words.
function wordsOf(file) {
  const [before, after] = file.modes, kind = mode => mode in KIND ? KIND[mode] : `mode ${mode}`;
  const changed = before && after && before !== after, only = kind(after || before || 100644);
  return [file.to === null ? 'deleted' : file.from === null ? 'new' : file.from === file.to ? '' : 'renamed',
    !changed ? only : !kind(before) ? `now ${kind(after)}` : !kind(after) ? `no longer ${kind(before)}` : `${kind(before)}, now ${kind(after)}`,
    file.notes.some(note => /^(GIT b|B)inary/.test(note)) ? 'binary' : '', file.runs ? `runs automatically in ${file.runs}` : ''].filter(Boolean);
}
const heading = file => h('h3', {}, bdi(nameOf(file)), h('span', {class: 'dim'}, wordsOf(file).map(word => `, ${word}`)));
// `beside`: where the reader can do something with a part, what makes the head of a hunk, and what a press on a line of the new file does.
function patch(text, beside) {
  return filesOf(text).map(file => [heading(file),
    file.hunks.length ? h('div', {class: 'diff code hunks'}, file.hunks.map((hunk, k) => {
      const name = `#${k + 1}, from line ${hunk.at}`;
      let now = hunk.now;
      return [h('div', {class: 'same'}, beside ? beside.hunk(file, k, name) : name), hunk.lines.map(line => {
        const sign = line[0], shown = sign === '+' ? row('+', 'Added: ', line.slice(1)) : sign === '-' ? row('−', 'Removed: ', line.slice(1)) : row(' ', '', sign === '\\' ? line : line.slice(1));
        if (beside && (sign === '+' || sign === ' ')) {
          const number = now++;
          put(shown, {class: 'now', title: `Line ${number}`, onclick: () => beside.line(file, number)}, []);
        }
        return shown;
      })];
    })) : null]);
}
// What differs between the files of two answers. Both patches tell lines of one base: what is in a hunk of either is known of both.
function filesCompared(before, after) {
  const keyed = text => new Map(filesOf(text).map(file => [file.from === null ? `new ${file.to}` : file.from, file]));
  const a = keyed(before), b = keyed(after), parts = [], same = [];
  for (const key of [...new Set([...a.keys(), ...b.keys()])].sort()) {
    const first = a.get(key), second = b.get(key);
    const blocks = between(first, second), told = [first, second].map(file => file ? [nameOf(file), ...wordsOf(file)].join(', ') : '');
    const alike = told[0] === told[1];
    if (first && second && !blocks.length && alike && first.notes.join() === second.notes.join()) { same.push(told[1]); continue; }
    parts.push(heading(second || first), h('p', {class: 'dim'}, !first ? 'Changed only by the second.' : !second ? 'Changed only by the first.'
      : alike ? 'Changed by both, differently.' : ['Changed by both, differently: ', bdi(told[0]), ' and ', bdi(told[1])]), blocks);
  }
  return [...parts, same.length ? h('p', {class: 'dim'}, 'Changed in the same way by both: ', same.map((name, k) => [k ? ', ' : '', bdi(name)])) : null];
}
function between(first, second) {
  const base = new Map(), spans = [];
  for (const hunk of [first, second].flatMap(file => file ? file.hunks : [])) {
    let at = hunk.at;
    for (const line of hunk.lines) if (line[0] === ' ' || line[0] === '-') base.set(at++, line.slice(1));
    spans.push([hunk.at, at]);
  }
  const joined = [];
  for (const [from, to] of spans.sort((x, y) => x[0] - y[0])) {
    const last = joined[joined.length - 1];
    if (last && from <= last[1]) last[1] = Math.max(last[1], to); else joined.push([from, to]);
  }
  const version = (file, from, to) => {
    const lines = [];
    let at = from;
    for (const hunk of (file ? file.hunks : []).filter(one => one.at >= from && one.at <= to)) {
      while (at < hunk.at) lines.push(base.get(at++));
      for (const line of hunk.lines) {
        if (line[0] === ' ' || line[0] === '+') lines.push(line.slice(1));
        if (line[0] === ' ' || line[0] === '-') at++;
      }
    }
    while (at < to) lines.push(base.get(at++));
    return lines.join('\n');
  };
  return joined.map(([from, to]) => [from, version(first, from, to), version(second, from, to)])
    .filter(([, x, y]) => x !== y).map(([from, x, y]) => [h('p', {class: 'dim'}, `From line ${from}`), difference(x, y, true)]);
}
