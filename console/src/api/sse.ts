/** One event of a stream. */
export interface Frame {
  id: string;
  event: string;
  data: string;
}

/** Comment in place of events that the server dropped, since they were not read in time. */
const dropped = /^: ?dropped \d/;

/** Splits the bytes of an event stream into events, as the HTML standard says. */
export class FrameReader {
  /** True behind the place of dropped events: nothing more is read. */
  hasGap = false;
  /** Pieces of a line that has not ended: a line of many megabytes is put together once. */
  private pieces: string[] = [];
  /** A return at the end of a piece, which may be the first half of an end of a line. */
  private held = "";
  private frame: Frame = { id: "", event: "", data: "" };
  private hasData = false;
  private decoder = new TextDecoder();

  read(bytes: Uint8Array): Frame[] {
    const text = this.held + this.decoder.decode(bytes, { stream: true });
    this.held = text.endsWith("\r") ? "\r" : "";
    const found: Frame[] = [];
    const lines = (this.held ? text.slice(0, -1) : text).split(/\r\n|\n|\r/);
    const rest = lines.pop() ?? "";
    if (lines[0] !== undefined) {
      lines[0] = this.pieces.join("") + lines[0];
      this.pieces = [];
    }
    if (rest) this.pieces.push(rest);
    for (const line of lines) {
      this.hasGap ||= dropped.test(line);
      if (this.hasGap) break;
      const frame = this.line(line);
      if (frame) found.push(frame);
    }
    return found;
  }

  private line(line: string): Frame | null {
    if (line === "") {
      const { frame, hasData } = this;
      this.frame = { id: frame.id, event: "", data: "" };
      this.hasData = false;
      return hasData ? frame : null;
    }
    const colon = line.indexOf(":");
    if (colon === 0) return null;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "data") {
      this.frame.data = this.hasData ? `${this.frame.data}\n${value}` : value;
      this.hasData = true;
    } else if (field === "event") {
      this.frame.event = value;
    } else if (field === "id") {
      this.frame.id = value;
    }
    return null;
  }
}

/**
 * The events of an answer. `heard` is called with all that comes, also with lines that are no event. They end where
 * the server dropped some: a stream that is opened again behind the last one has them.
 */
export async function* frames(response: Response, heard: () => void = () => undefined): AsyncGenerator<Frame> {
  if (!response.body) return;
  const reader = new FrameReader();
  const body = response.body.getReader();
  try {
    for (;;) {
      const { done, value } = await body.read();
      if (done) return;
      heard();
      yield* reader.read(value);
      if (reader.hasGap) return;
    }
  } finally {
    // Ends the connection also if the one who reads stops early.
    void body.cancel().catch(() => undefined);
  }
}
