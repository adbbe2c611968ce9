// The Markdown that models write, as elements. What it does not know stays text.
const INLINE = /`([^`\n]{1,2000})`|\*\*([^*\n]{1,2000})\*\*|\*([^*\s][^*\n]{0,2000})\*|\[([^\]\n]{1,300})\]\((https?:\/\/[^\s)<>"]{1,2000})\)|(https?:\/\/[^\s<>"')\]]{1,2000})/g;
const link = (address, words) => [
  words && words !== address ? visible(words) + ' ' : null,
  h('a', {href: address, rel: 'noopener noreferrer nofollow', target: '_blank'}, flat(address, 120)),
];
function inline(text) {
  const parts = [];
  let from = 0;
  for (const found of text.matchAll(INLINE)) {
    parts.push(visible(text.slice(from, found.index)));
    from = found.index + found[0].length;
    const [, code, strong, weak, words, target, bare] = found;
    if (code !== undefined) parts.push(h('code', {}, visible(code)));
    else if (strong !== undefined) parts.push(h('strong', {}, visible(strong)));
    else if (weak !== undefined) parts.push(h('em', {}, visible(weak)));
    else parts.push(...link(target || bare, words));
  }
  parts.push(visible(text.slice(from)));
  return parts;
}
const FENCE = /^\s*(```|~~~)/, HEADING = /^#{1,6} +(.*)/, ITEM = /^(\s*)([-*+]|\d{1,3}[.)]) +(.*)/, QUOTE = /^> ?(.*)/, ROW = /^\s*\|.*\|\s*$/;
const cells = row => row.trim().slice(1, -1).split('|').map(cell => cell.trim());

function listOf(lines, at) {
  const first = ITEM.exec(lines[at]), depth = first[1].length;
  const list = h(/\d/.test(first[2]) ? 'ol' : 'ul', /\d/.test(first[2]) ? {start: parseInt(first[2], 10)} : {});
  let item = null, found;
  while (at < lines.length && (found = ITEM.exec(lines[at]))) {
    if (found[1].length < depth) break;
    if (found[1].length > depth + 1 && item && depth < 12) {
      const [inner, next] = listOf(lines, at);
      item.append(inner);
      at = next;
      continue;
    }
    item = h('li', {}, inline(found[3]));
    list.append(item);
    at++;
    while (at < lines.length && lines[at].trim() && !ITEM.test(lines[at]) && !FENCE.test(lines[at]) && /^\s+/.test(lines[at]))
      item.append(' ', ...inline(lines[at++].trim()));
  }
  return [list, at];
}

function markdown(text) {
  const lines = text.split(/\r?\n/), blocks = [];
  let at = 0, found;
  while (at < lines.length) {
    const line = lines[at];
    if (FENCE.test(line)) {
      const code = [];
      while (++at < lines.length && !FENCE.test(lines[at])) code.push(lines[at]);
      at++;
      blocks.push(h('pre', {tabindex: 0}, h('code', {}, visible(code.join('\n')))));
    } else if ((found = HEADING.exec(line))) {
      blocks.push(h('h3', {}, inline(found[1])));
      at++;
    } else if (ROW.test(line)) {
      const rows = [];
      while (at < lines.length && ROW.test(lines[at])) rows.push(cells(lines[at++]));
      const kept = rows.filter(row => !row.every(cell => /^:?-+:?$/.test(cell)));
      blocks.push(h('div', {class: 'wide', tabindex: 0, role: 'group', 'aria-label': 'Table'}, h('table', {},
        kept.map((row, place) => h('tr', {}, row.map(cell => h(place ? 'td' : 'th', {}, inline(cell))))))));
    } else if (ITEM.test(line)) {
      const [list, next] = listOf(lines, at);
      blocks.push(list);
      at = next;
    } else if (QUOTE.test(line)) {
      const quoted = [];
      while (at < lines.length && (found = QUOTE.exec(lines[at]))) { quoted.push(found[1]); at++; }
      blocks.push(h('blockquote', {}, inline(quoted.join(' '))));
    } else if (!line.trim()) {
      at++;
    } else {
      const words = [line];
      while (++at < lines.length && lines[at].trim() && ![FENCE, HEADING, ROW, ITEM, QUOTE].some(kind => kind.test(lines[at]))) words.push(lines[at]);
      blocks.push(h('p', {}, words.map((part, place) => [place ? h('br') : null, inline(part)])));
    }
  }
  return h('div', {class: 'md written', dir: 'auto'}, blocks);
}
const written = text => [text.text ? markdown(text.text) : null, leftOut(text)];
