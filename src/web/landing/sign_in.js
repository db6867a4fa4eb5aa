
'use strict';
(() => {
  const KEY = 'greenroom.token';
  const form = document.getElementById('sign-in');
  const field = document.getElementById('token');
  const message = document.getElementById('message');
  const show = async (token) => {
    message.textContent = '';
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
      message.textContent = 'The server rejected this token.';
    } catch {
      message.textContent = 'No answer from the server, or the token has invalid characters.';
    }
  };
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    show(field.value.trim());
  });
  const saved = sessionStorage.getItem(KEY);
  if (saved !== null) show(saved);
})();
