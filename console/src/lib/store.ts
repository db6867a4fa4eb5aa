import { effect, signal, type Signal } from "@preact/signals";

/** A signal that browsers keep under `key`. Storage may be off (private windows): then it lasts as long as the page. */
export function stored<T>(key: string, initial: T, area: () => Storage = () => localStorage): Signal<T> {
  const name = `greenroom.${key}`;
  const value = signal<T>(load(name, initial, area));
  effect(() => {
    try {
      area().setItem(name, JSON.stringify(value.value));
    } catch {
      // nothing is kept
    }
  });
  return value;
}

function load<T>(name: string, initial: T, area: () => Storage): T {
  try {
    const text = area().getItem(name);
    return text === null ? initial : (JSON.parse(text) as T);
  } catch {
    return initial;
  }
}
