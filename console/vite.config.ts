import { defineConfig, type Plugin } from "vite";

const server = process.env.GREENROOM ?? "http://127.0.0.1:3141";

/** Serves the page for every path below `/console`, also for ids with dots, as the server does. */
function pages(): Plugin {
  return {
    name: "pages",
    configureServer({ middlewares }) {
      middlewares.use((request, _, next) => {
        const path = request.url?.split("?")[0] ?? "";
        const wantsPage = request.headers.accept?.includes("text/html") ?? false;
        if (wantsPage && /^\/console(\/(?!src\/|@|node_modules)|$)/.test(path)) request.url = "/console/";
        next();
      });
    },
  };
}

// The API has these paths; everything else in development is the console itself.
const api = ["workflows", "inbox", "agents", "observability", "api", "tools", "doc", "readyz", "livez", "metrics", "updates", "ws"];

export default defineConfig({
  base: "/console/",
  plugins: [pages()],
  build: {
    target: ["chrome123", "firefox121", "safari17.5"],
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    emptyOutDir: true,
  },
  server: {
    port: 3700,
    strictPort: true,
    proxy: Object.fromEntries(api.map((name) => [`^/${name}(/|\\?|$)`, { target: server, ws: name === "ws" }])),
  },
});
