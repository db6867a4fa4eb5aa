
'use strict';
(() => {
  const KEY = 'greenroom.token';
  const form = document.getElementById('sign-in');
  const field = document.getElementById('token');
  const said = document.getElementById('said');
  const show = async (token) => {
    said.textContent = '';
    try {
      const headers = { authorization: `Bearer ${token}` };
      const answer = await fetch('', { headers, cache: 'no-store' });
      const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
      if (answer.ok && page.getElementById('sign-in') === null) {
        sessionStorage.setItem(KEY, token);
        document.body.replaceWith(page.body);
        return;
      }
      sessionStorage.removeItem(KEY);
      said.textContent = 'The server does not take this token.';
    } catch {
      said.textContent = 'The server did not answer, or this cannot be a token.';
    }
  };
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    show(field.value.trim());
  });
  const kept = sessionStorage.getItem(KEY);
  if (kept !== null) show(kept);
})();
