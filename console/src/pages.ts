import type { ComponentType } from "preact";

export interface Page {
  matches: (path: string[]) => boolean;
  load: () => Promise<ComponentType<{ path: string[] }>>;
}

const at =
  (name: string, ...lengths: number[]) =>
  (path: string[]): boolean =>
    (path[0] ?? "") === name && lengths.includes(path.length);

/** Each view is loaded when it is first opened. */
export const pages: Page[] = [
  { matches: at("executions", 1), load: async () => (await import("./executions/View.tsx")).ExecutionsView },
  { matches: at("executions", 3), load: async () => (await import("./execution/View.tsx")).ExecutionView },
  { matches: at("inbox", 1, 2), load: async () => (await import("./inbox/View.tsx")).InboxView },
];
