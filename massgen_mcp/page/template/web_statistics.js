// `massgen web`: what all runs come to.
const note = told(), into = h('div');
place.replaceChildren(h('nav', {}, anchor('/', '← Runs'), anchor('/new', 'Start a run'), leave()), note, into);
ask('/api/statistics').then(answer => answer.json()).then(all => draw(all, into)).catch(error => failed(note, error));
