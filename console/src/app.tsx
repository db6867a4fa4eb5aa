import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { boot } from "./lib/boot.ts";
import { useKeys } from "./lib/hooks.ts";
import { go, parts, to } from "./lib/router.ts";
import { absoluteTimes, actingAs, theme, type Theme } from "./lib/settings.ts";
import { inbox } from "./inbox/store.ts";
import { forgetToken, token } from "./api/auth.ts";
import { Empty } from "./parts/Empty.tsx";
import { Help, helpOpen } from "./parts/Help.tsx";
import { Icon } from "./parts/icons.tsx";
import { LinkLine, LinkState } from "./parts/Link.tsx";
import { Menu } from "./parts/Menu.tsx";
import { Palette, paletteOpen } from "./parts/Palette.tsx";
import { SignIn } from "./parts/SignIn.tsx";
import { views } from "./parts/views.ts";
import licences from "./licences.txt?url";
import { pages } from "./pages.ts";

export function App() {
  useShortcuts();
  return (
    <>
      <a class="button skip" href="#main" onClick={(event) => (event.preventDefault(), document.getElementById("main")?.focus())}>
        To the content
      </a>
      <div class="frame">
        <Rail />
        <div>
          <Top />
          <LinkLine />
          <main id="main" tabIndex={-1}>
            <Page />
          </main>
        </div>
      </div>
      <Palette />
      <Help />
      <SignIn />
    </>
  );
}

function Rail() {
  const current = parts.value[0] ?? "";
  const { asks, more } = inbox.value;
  return (
    <nav class="rail" aria-label="Views">
      <a class="brand" href={to()} aria-label="greenroom, home">
        <svg viewBox="0 0 16 16" aria-hidden="true">
          <rect class="ground" width="16" height="16" rx="4" />
          <circle cx="8" cy="8" r="3.5" fill="#fff" />
        </svg>
        <span>greenroom</span>
      </a>
      <ul>
        {views.map((view) => (
          <li key={view.name}>
            <a href={view.href} aria-current={current === view.part ? "page" : undefined}>
              <Icon name={view.icon} />
              <span>{view.name}</span>
              {view.part === "inbox" && asks.size > 0 && (
                <span class="many" title="Waiting for a person">
                  {asks.size}
                  {more && "+"}
                </span>
              )}
            </a>
          </li>
        ))}
      </ul>
    </nav>
  );
}

function Top() {
  return (
    <header class="top">
      <span class="title" title={boot.title}>
        <bdi>{boot.title}</bdi>
        {boot.readOnly && <span class="quiet"> · read only</span>}
      </span>
      <button type="button" class="button search" onClick={() => (paletteOpen.value = true)} aria-label="Go to… Ctrl K">
        <Icon name="search" />
        <span>Go to…</span>
        <kbd>Ctrl K</kbd>
      </button>
      <LinkState />
      <Settings />
    </header>
  );
}

function Settings() {
  const themes: Theme[] = ["system", "light", "dark"];
  const name = boot.auth ? "" : actingAs.value.slice(0, 12);
  return (
    <Menu
      label={name ? `Settings of ${name}` : "Settings"}
      head={
        <>
          <Icon name="user" />
          {name}
        </>
      }
    >
        <div class="field">
          <span>Theme</span>
          <div class="tabs" role="group" aria-label="Theme">
            {themes.map((each) => (
              <button key={each} type="button" aria-pressed={theme.value === each} onClick={() => (theme.value = each)}>
                {each}
              </button>
            ))}
          </div>
        </div>
        <label class="inline">
          <input type="checkbox" checked={absoluteTimes.value} onChange={(event) => (absoluteTimes.value = event.currentTarget.checked)} /> Times of day in place of “5 min ago”
        </label>
        {boot.auth ? (
          token.value && (
            <button type="button" class="button" onClick={forgetToken}>
              Forget the token
            </button>
          )
        ) : (
          <div class="field">
            <label for="acting">Your name</label>
            <input id="acting" type="text" value={actingAs.value} placeholder="nobody" onInput={(event) => (actingAs.value = event.currentTarget.value)} />
            <p class="hint">Sent with what you do. This server has no tokens, so it is recorded as a claim.</p>
          </div>
        )}
        <button type="button" class="button" onClick={() => (helpOpen.value = true)}>
          Keyboard <kbd>?</kbd>
        </button>
        <p class="quiet small">
          {boot.version && `Version ${boot.version} · `}
          <a href={licences} target="_blank" rel="noopener">
            Licences
          </a>
        </p>
    </Menu>
  );
}

function Page() {
  const path = parts.value;
  useFocus(path.join("/"));
  const page = pages.find((each) => each.part === (path[0] ?? "") && each.lengths.includes(path.length));
  if (!page) {
    return (
      <Empty title="There is no such page" isPage>
        <p>
          The console begins at <a href={to()}>Home</a>.
        </p>
      </Empty>
    );
  }
  return <page.view key={keyOf(path)} path={path} />;
}

/** Moves the focus to a new view if its element is gone with the one before, so that readers of the screen begin there. */
function useFocus(path: string): void {
  const shown = useRef(path);
  useEffect(() => {
    if (shown.current !== path && document.activeElement === document.body) document.getElementById("main")?.focus({ preventScroll: true });
    shown.current = path;
  }, [path]);
}

function useShortcuts(): void {
  const [pending, setPending] = useState(false);
  useKeys((event) => {
    if (pending) {
      setPending(false);
      const view = views.find((each) => each.key === event.key);
      if (view) go(view.href);
      return;
    }
    if (event.key === "g") setPending(true);
    if (event.key === "?") helpOpen.value = true;
  });
  useEffect(() => {
    if (!pending) return;
    const timer = setTimeout(() => setPending(false), 1500);
    return () => clearTimeout(timer);
  }, [pending]);
  // Before the page is painted: what is seen can be used.
  useLayoutEffect(() => {
    const listen = (event: KeyboardEvent): void => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
        event.preventDefault();
        paletteOpen.value = !paletteOpen.value;
      }
    };
    addEventListener("keydown", listen);
    return () => removeEventListener("keydown", listen);
  }, []);
}

/** Views of other things begin anew; the inbox keeps its list beside the chosen question. */
function keyOf(path: string[]): string {
  return path[0] === "inbox" ? "inbox" : path.join("/");
}
