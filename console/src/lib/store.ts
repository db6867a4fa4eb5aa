import { effect, signal, type Signal } from "@preact/signals";

/** A signal that browsers keep under `key`. Storage may be off (private windows): then it lasts as long as the page. */
export function stored<T>(key: string, initial: T, area: () => Storage = () => localStorage): Signal<T> {
  const name = nameOf(key);
  const value = signal<T>(load(name, initial, area));
  effect(() => {
    try {
      area().setItem(name, JSON.stringify(value.value));
    } catch {
      // nothing is kept
    }
  });
  // What another tab has stored since is not overwritten with what this one knows.
  globalThis.addEventListener?.("storage", (event) => {
    if (event.key === name && event.newValue !== null) value.value = load(name, initial, area);
  });
  return value;
}

/** Removes what is kept under `key`. The signal of this page stays as it is. */
export function dropStored(key: string, area: () => Storage): void {
  try {
    area().removeItem(nameOf(key));
  } catch {
    // nothing is kept
  }
}

function nameOf(key: string): string {
  return `greenroom.${key}`;
}

function load<T>(name: string, initial: T, area: () => Storage): T {
  try {
    const text = area().getItem(name);
    return text === null ? initial : (JSON.parse(text) as T);
  } catch {
    return initial;
  }
}
