/** Settings that the server gives the page in `<meta name="greenroom">`. */
export interface Boot {
  title: string;
  accent: string | null;
  loginUrl: string | null;
  readOnly: boolean;
  auth: boolean;
  version: string;
}

const none: Boot = { title: "greenroom", accent: null, loginUrl: null, readOnly: false, auth: false, version: "" };

function read(): Boot {
  if (typeof document === "undefined") return none;
  const content = document.querySelector<HTMLMetaElement>('meta[name="greenroom"]')?.content ?? "{}";
  try {
    return { ...none, ...(JSON.parse(content) as Partial<Boot>) };
  } catch {
    return none;
  }
}

export const boot = read();
