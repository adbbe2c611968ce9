// The data of a saved page are in it.
draw(JSON.parse(document.getElementById('data').textContent), document.getElementById('run'));
