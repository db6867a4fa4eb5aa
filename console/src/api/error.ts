/** A request that was refused, or that got no answer. */
export class ApiError extends Error {
  constructor(
    message: string,
    /** 0 without an answer. */
    readonly status: number,
    readonly code: string,
    readonly requestId: string,
    /** The execution that it is about, if there is one. */
    readonly executionId = "",
    /** A known name that is nearest to the unknown one. */
    readonly didYouMean = "",
  ) {
    super(message);
  }
}

/** True for an answer that the same request gets again: only another token or another request changes it. */
export function isRefused(error: ApiError | null | undefined): boolean {
  return error != null && error.status >= 400 && error.status < 500 && ![408, 425, 429].includes(error.status);
}

/** Returns advice about a refusal, where its text has none. */
export function advice(error: ApiError): string {
  if (error.status === 0) return "The server does not answer. Check that it runs, then try again.";
  if (error.status === 401) return "This needs a token. Sign in and try again.";
  if (error.status === 403) return "Your token does not allow this. Ask for a role that does.";
  if (error.status === 429) return "There are too many requests now. Try again in a moment.";
  if (error.status === 503) return "The server does not accept this now. Try again in a moment.";
  if (error.status >= 500) return "The log of the server has the cause under this request id.";
  return "";
}

export async function refusal(response: Response): Promise<ApiError> {
  const text = await response.text().catch(() => "");
  const id = response.headers.get("x-request-id") ?? "";
  const code = response.headers.get("x-error-code") ?? "";
  const { message, meant } = said(text);
  return new ApiError(message || `The server answered ${response.status}`, response.status, code, id, response.headers.get("x-execution-id") ?? "", meant);
}

function said(text: string): { message: string; meant: string } {
  try {
    const { error, data } = JSON.parse(text) as { error?: unknown; data?: { didYouMean?: unknown } | null };
    const meant = data?.didYouMean;
    return { message: typeof error === "string" ? error : "", meant: typeof meant === "string" ? meant : "" };
  } catch {
    return { message: text.slice(0, 500), meant: "" };
  }
}
