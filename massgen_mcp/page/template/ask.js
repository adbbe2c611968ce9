// How a page of `massgen web` asks its server: with the token of its address. What is done is a call of the MCP tools.
const KEY = 'massgen-token', known = JSON.parse(document.getElementById('data').textContent);
const place = document.getElementById('run');
const bearer = token => token ? {Authorization: `Bearer ${token}`} : {};
// The token that an address brings is kept only if it is right: any page can open an address with a wrong one.
async function bring() {
  const [, token] = /^#token=([\w-]+)$/.exec(location.hash) || [];
  if (!token) return false;
  history.replaceState(null, '', location.pathname + location.search);
  const answer = await fetch('/api/runs?limit=1', {headers: bearer(token)}).catch(() => null);
  if (answer && answer.ok) localStorage.setItem(KEY, token);
  return Boolean(answer && answer.ok);
}
const brought = bring();
addEventListener('hashchange', async () => { if (await bring() && !inside) location.reload(); });

class Refused extends Error {}
let inside = false;
const leave = () => known.login && h('button', {type: 'button', class: 'leave', onclick: async () => {
  localStorage.removeItem(KEY);
  await fetch('/api/login', {method: 'DELETE'}).catch(() => null);
  location.assign('/');
}}, 'Sign out');
function loginForm() {
  const field = h('input', {type: 'password', name: 'token', autocomplete: 'current-password', required: true, 'aria-label': 'Token'});
  const form = h('form', {}, h('label', {}, 'Your token ', field), ' ', h('button', {}, 'Sign in'));
  form.addEventListener('submit', async event => {
    event.preventDefault();
    const answer = await fetch('/api/login', {method: 'POST', headers: bearer(field.value.trim())}).catch(() => null);
    if (answer && answer.ok) location.reload();
    else { field.value = ''; field.placeholder = 'Wrong token'; }
  });
  return form;
}
// At the authorization server, if there is one, or by a token. What somebody has typed in a page stays: that is done in
// another tab then.
function signIn() {
  const at = known.login.at, by = loginForm(), go = at && h('a', {class: 'go', href: '/login', onclick: () => {
    go.href = `/login?to=${encodeURIComponent(location.pathname + location.search)}`;
    if (inside) go.target = '_blank';
  }}, 'Sign in at ', bdi(at));
  return h('section', {role: 'alert', class: 'enter'}, h('p', {class: 'dim'}, 'massgen on ', bdi(location.host)), h('h1', {}, 'Sign in to see your runs'),
    known.problem && h('p', {class: 'bad'}, visible(known.problem)),
    at ? [go, h('p', {class: 'dim'}, 'Enter your password there, never on this page.'), h('details', {}, h('summary', {}, 'I have a token'), by)] : by);
}
if (known.problem) history.replaceState(null, '', '/');  // the code in the address is of no more use
const out = known.login ? signIn() : h('section', {role: 'alert'}, h('h1', {}, 'Access denied'), h('p', {}, 'Open the address that ', h('code', {}, 'massgen web'), ' printed; it prints a new one each time it starts.'));
async function ask(path, options = {}) {
  await brought;
  const held = () => localStorage.getItem(KEY) || '', token = held();
  const answer = known.problem ? {status: 401} : await fetch(path, {...options, headers: {...options.headers, ...bearer(token)}})
    .catch(error => { throw Object.assign(error, {unreachable: true}); });
  if (answer.status === 401) {
    inside ? place.prepend(out) : place.replaceChildren(out);  // what somebody has typed stays
    if (!inside && known.login) document.title = 'Sign in · massgen';
    throw new Refused('The token is missing or has expired.');
  }
  inside = true;
  if (token === held()) out.remove();  // an answer to an earlier token says nothing of a later refusal
  if (answer.status === 404) throw new Refused('Run not found. massgen may have deleted it because of its age.');
  if (!answer.ok) throw Object.assign(new Refused(((await answer.json().catch(() => ({}))).error || '').replace(/^ERROR \w+: /, '') || `The server rejected the request (${answer.status}).`), {passing: answer.status >= 500});
  return answer;
}
const tool = async (name, args) => (await ask(`/api/tools/${name}`, {method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify(args)})).json();
const told = () => h('p', {class: 'told', role: 'status', tabindex: -1});
const say = (where, text, bad) => { where.className = bad ? 'told bad' : 'told'; where.textContent = visible(text); };
const anchor = (to, words) => h('a', {href: to}, words);
const failed = (where, error) => say(where, error instanceof Refused ? error.message : error.unreachable ? 'Cannot reach the server.' : `Something went wrong: ${error.message}`, true);
