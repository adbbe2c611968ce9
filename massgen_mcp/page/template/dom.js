// Elements are made by name and text is set as text: nothing that anybody wrote is ever read as markup.
const SVG = 'http://www.w3.org/2000/svg';
const put = (element, attributes, children) => {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name === 'style') Object.assign(element.style, value);
    else if (name === 'key' || name === 'own') element[name] = value;
    else element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.flat(Infinity).filter(child => child !== null && child !== undefined && child !== false));
  return element;
};
const h = (tag, attributes, ...children) => put(document.createElement(tag), attributes, children);
const s = (tag, attributes, ...children) => put(document.createElementNS(SVG, tag), attributes, children);

// Makes the children of `old` those in `made`, keeping every element that is there already, and with it what the reader
// did to it: focus, selection, an open drawer. Elements are the same by their `key`, without one by name and order; the
// inside of one that is its `own` is left to whoever made it.
function merge(old, made) {
  const keyed = new Map(), rest = [];
  for (const child of old.childNodes) child.key === undefined || keyed.has(child.key) ? rest.push(child) : keyed.set(child.key, child);
  const wanted = made.map(child => {
    const like = child.key === undefined ? rest[0] : keyed.get(child.key);
    if (!like || like.nodeName !== child.nodeName) return child;
    child.key === undefined ? rest.shift() : keyed.delete(child.key);
    if (like === child) return child;
    if (child.nodeType === Node.TEXT_NODE) { if (like.data !== child.data) like.data = child.data; return like; }
    for (const {name, value} of child.attributes) if (name !== 'style' && like.getAttribute(name) !== value) like.setAttribute(name, value);
    for (const {name} of [...like.attributes]) if (!['open', 'style'].includes(name) && !child.hasAttribute(name)) like.removeAttribute(name);
    if (like.style.cssText !== child.style.cssText) like.style.cssText = child.style.cssText;
    if (!like.own) merge(like, [...child.childNodes]);
    return like;
  });
  for (const child of [...rest, ...keyed.values()]) child.remove();
  wanted.forEach((child, k) => { if (old.childNodes[k] !== child) old.insertBefore(child, old.childNodes[k] || null); });
}

// The end of an answer's name, as in "gpt's 2nd answer", from its key: `agent1.2`, in a further attempt `agent1.2, attempt 2`.
const whichAnswer = key => {
  const [, number, rest] = key.match(/\.(\d+)(.*)/), last = number % 100 > 10 && number % 100 < 14 ? 0 : number % 10;
  return `'s ${number}${['', 'st', 'nd', 'rd'][last] || 'th'} answer${rest}`;
};

// Characters that would be invisible, or would turn the direction of the text around them, are shown as signs. What joins an
// emoji, or separates letters of a script that is written joined, stays: one at a time it hides nothing.
const EMOJI = String.raw`\p{Extended_Pictographic}\p{Emoji_Modifier}?[\ufe0e\ufe0f]?`;
const JOINED = ['Arabic', 'Syriac', 'Devanagari', 'Bengali', 'Gurmukhi', 'Gujarati', 'Oriya', 'Tamil', 'Telugu', 'Kannada', 'Malayalam', 'Sinhala']
  .map(script => `\\p{Script=${script}}`).join('');
const HIDDEN = String.raw`[\x80-\x9f\u2028\u2029\u2800\ufff9-\ufffb\u{13430}-\u{1343f}\p{Bidi_Control}\p{Default_Ignorable_Code_Point}]`;
const SIGNED = new RegExp(String.raw`(${EMOJI}(?:\u200d${EMOJI})*|[#*0-9]\ufe0f\u20e3|[${JOINED}][\u200c\u200d](?=[${JOINED}]))|${HIDDEN}`, 'gu');
const sign = c => `⟨U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}⟩`;
const visible = text => text
  .replace(/[\x00-\x08\x0b-\x1f\x7f]/g, c => String.fromCharCode(c === '\x7f' ? 0x2421 : 0x2400 + c.charCodeAt(0)))
  .replace(SIGNED, (c, harmless) => harmless || sign(c));
const flat = (text, most) => {
  const line = visible(text.slice(0, 4 * most).replace(/\s+/g, ' ').trim());
  return line.length > most ? line.slice(0, most - 1) + '…' : line;
};
const bdi = text => h('bdi', {}, visible(text));
const leftOut = text => text.left_out
  ? h('p', {class: 'note'}, `${text.left_out.toLocaleString('en')} characters left out here.`) : null;
const plain = text => [text.text && h('div', {class: 'plain'}, visible(text.text)), leftOut(text)];
const clock = seconds => {
  const whole = Math.floor(Math.max(0, seconds)), two = number => String(number).padStart(2, '0');
  const hours = Math.floor(whole / 3600);
  return (hours ? `${hours}:` : '') + two(Math.floor(whole / 60) % 60) + ':' + two(whole % 60);
};
