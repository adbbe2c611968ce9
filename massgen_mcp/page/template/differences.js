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
    return [...gone.map(line => h('div', {}, sign('−', 'Removed: '), h('del', {}, visible(line)))),
      ...come.map(line => h('div', {}, sign('+', 'Added: '), h('ins', {}, visible(line))))];
  return [h('div', {}, sign('±', 'Changed: '), runs.map(run => run.same ? visible(run.same.join(''))
    : [run.gone.length ? h('del', {}, visible(run.gone.join(''))) : null, run.come.length ? h('ins', {}, visible(run.come.join(''))) : null]))];
}
const sign = (mark, word) => [h('span', {class: 'sign', 'aria-hidden': 'true'}, mark), h('span', {class: 'sr'}, word)];
function compared(before, after) {
  return [difference(before.text, after.text),
    before.left_out || after.left_out ? h('p', {class: 'note'}, 'Only what is here of both was compared.') : null];
}
function difference(before, after) {
  if (before === after) return h('p', {class: 'dim'}, 'They are the same, to the letter.');
  const rows = [], code = /^\s*(```|~~~)/m.test(before + '\n' + after);
  for (const run of edits(before.split('\n'), after.split('\n'))) {
    if (!run.same) rows.push(...changedLines(run.gone, run.come));
    else if (run.same.length < 8) rows.push(...run.same.map(line => h('div', {}, sign(' ', ''), visible(line))));
    else rows.push(
      ...run.same.slice(0, 2).map(line => h('div', {}, sign(' ', ''), visible(line))),
      h('div', {class: 'same'}, `${run.same.length - 4} lines are the same`),
      ...run.same.slice(-2).map(line => h('div', {}, sign(' ', ''), visible(line))));
  }
  return h('div', {class: code ? 'diff code' : 'diff'}, rows);
}
function patch(text) {
  // A unified diff, line by line.
  return h('pre', {class: 'diff code wide', tabindex: 0}, text.split('\n').map(line => h('div', {},
    /^\+(?!\+\+ )/.test(line) ? h('ins', {}, visible(line)) : /^-(?!-- )/.test(line) ? h('del', {}, visible(line))
      : /^(diff |@@|\+\+\+ |--- )/.test(line) ? h('strong', {}, visible(line)) : visible(line) || ' ')));
}
