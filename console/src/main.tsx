import { render } from "preact";
import { App } from "./app.tsx";
import { startInbox } from "./inbox/store.ts";
import { startRouter } from "./lib/router.ts";
import { applyTheme } from "./lib/settings.ts";
import { startClock } from "./lib/time.ts";
import "./style/index.css";

applyTheme();
startClock();
startRouter();
startInbox();
const root = document.getElementById("app");
if (root) render(<App />, root);
