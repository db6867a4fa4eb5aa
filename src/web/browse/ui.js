// Shows the API document, with a token if the server requires one. The token is kept for this tab only.
'use strict';
(() => {
  const KEY = 'greenroom.token';
  // Above this number, groups of operations start collapsed: rendering thousands takes long.
  const OPEN_OPERATIONS_MAX = 200;
  const form = document.getElementById('sign-in');
  const field = document.getElementById('token');
  const message = document.getElementById('message');

  const dark = matchMedia('(prefers-color-scheme: dark)');
  const follow = () => document.documentElement.classList.toggle('dark-mode', dark.matches);
  dark.addEventListener('change', follow);
  follow();

  const operationsOf = (spec) =>
    Object.values(spec.paths).reduce((count, item) => count + Object.keys(item).length, 0);

  const show = (spec, token) => {
    form.hidden = true;
    const ui = SwaggerUIBundle({
      spec,
      dom_id: '#swagger-ui',
      layout: 'BaseLayout',
      presets: [SwaggerUIBundle.presets.apis],
      deepLinking: true,
      displayRequestDuration: true,
      docExpansion: operationsOf(spec) > OPEN_OPERATIONS_MAX ? 'none' : 'list',
      filter: true,
      tryItOutEnabled: true,
      validatorUrl: 'none',
      onComplete: () => {
        if (token !== null) ui.preauthorizeApiKey('bearerAuth', token);
      },
    });
  };

  const load = async (token) => {
    message.textContent = '';
    let answer;
    try {
      const headers = token === null ? {} : { authorization: `Bearer ${token}` };
      answer = await fetch('doc', { headers, cache: 'no-cache' });
    } catch {
      message.textContent = 'No answer from the server, or the token has invalid characters.';
      form.hidden = false;
      return;
    }
    if (answer.ok) {
      if (token !== null) sessionStorage.setItem(KEY, token);
      show(await answer.json(), token);
      return;
    }
    sessionStorage.removeItem(KEY);
    form.hidden = false;
    if (token === null && answer.status === 401) return;
    const refusal = await answer.json().catch(() => ({ error: `status ${answer.status}` }));
    message.textContent = refusal.error;
  };

  form.addEventListener('submit', (event) => {
    event.preventDefault();
    load(field.value.trim());
  });
  load(sessionStorage.getItem(KEY));
})();
