// The documented page of a chat, bundled once for each release of the AI SDK, on a server of its own.

import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

import { build } from "esbuild";

const at = (path) => fileURLToPath(new URL(path, import.meta.url));

/** The component of docs/people.md, as it is written there. */
const documented = {
  name: "documented",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^documented-chat$/ }, ({ path }) => ({ path, namespace: "docs" }));
    onLoad({ filter: /./, namespace: "docs" }, async () => {
      const page = await readFile(at("../../../docs/people.md"), "utf8");
      const blocks = [...page.matchAll(/^```jsx\n(.*?)^```/gms)];
      if (blocks.length !== 1) throw new Error(`docs/people.md has ${blocks.length} pages for React`);
      return { contents: blocks[0][1], loader: "jsx", resolveDir: at("..") };
    });
  },
};

async function bundle(major) {
  const { outputFiles } = await build({
    entryPoints: [at("main.jsx")],
    plugins: [documented],
    alias: { ai: `ai${major}`, "@ai-sdk/react": `ai${major}-react` },
    bundle: true,
    write: false,
    format: "esm",
    jsx: "automatic",
    // with the warnings of React
    define: { "process.env.NODE_ENV": '"development"' },
    logLevel: "warning",
  });
  return outputFiles[0].text;
}

const html = (script) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Chat</title>
<link rel="icon" href="data:,">
</head>
<body>
<div id="root"></div>
<script type="module" src="${script}"></script>
</body>
</html>
`;

/** Serves `/6` and `/7`, the page with each of these releases; returns the server. */
export async function serve(majors) {
  const files = new Map();
  for (const major of majors) {
    files.set(`/${major}`, ["text/html", html(`/${major}.js`)]);
    files.set(`/${major}.js`, ["text/javascript", await bundle(major)]);
  }
  const server = createServer((request, response) => {
    const [type, text] = files.get(request.url.split("?")[0]) ?? [];
    response.writeHead(type ? 200 : 404, { "content-type": `${type ?? "text/plain"}; charset=utf-8` });
    response.end(text);
  });
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  return server;
}
