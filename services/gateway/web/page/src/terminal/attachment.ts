/**
 * A process that this tab is attached to over a WebSocket: after a break the output goes on at the
 * byte where it stopped. The server speaks as docs/terminals.md says.
 */
export type TerminalState =
  | { kind: "connecting" }
  | { kind: "open"; isViewOnly: boolean }
  | { kind: "waiting" }
  | { kind: "ended"; words: string };

interface ServerMessage {
  type: "opened" | "heartbeat" | "exited" | "closed" | "problem";
  cursor?: number;
  view_only?: boolean;
  reason?: string;
  code?: string;
  detail?: string;
  process?: { exit?: { exit_code?: number | null; signal?: string | null } | null };
}

/** What a message of the server means: a new cursor, a state, or both. */
export interface Told {
  cursor?: number;
  state?: TerminalState;
}

/** Read a message of the server; words of a newer one mean nothing. */
export function told(text: string): Told {
  const message = JSON.parse(text) as ServerMessage;
  const cursor = message.cursor === undefined ? {} : { cursor: message.cursor };
  switch (message.type) {
    case "opened":
      return { ...cursor, state: { kind: "open", isViewOnly: message.view_only ?? false } };
    case "closed":
      return cursor;
    case "exited":
      return { ...cursor, state: { kind: "ended", words: exitWords(message) } };
    case "problem":
      return { ...cursor, state: { kind: "ended", words: message.detail ?? "Something went wrong." } };
    default:
      return {};
  }
}

function exitWords({ process }: ServerMessage): string {
  const exit = process?.exit;
  if (exit?.signal) return `The process was ended by ${exit.signal}.`;
  return `The process ended with exit code ${exit?.exit_code ?? "unknown"}.`;
}

const ATTEMPTS_MAX = 8;
const SILENCE_MS_MAX = 45_000;

export function pauseMs(failures: number): number {
  return Math.min(10_000, 250 * 2 ** failures);
}

export interface AttachmentOptions {
  /** The address of the terminal, without its query. */
  path: string;
  isViewOnly: boolean;
  size: () => { rows: number; columns: number };
  onOutput: (data: Uint8Array) => void;
  onState: (state: TerminalState) => void;
}

export interface Attachment {
  write: (data: Uint8Array) => void;
  resize: (rows: number, columns: number) => void;
}

/** Attach, and attach again after breaks until the process ends or is refused. */
export function attach(options: AttachmentOptions): Attachment {
  let socket: WebSocket | null = null;
  let cursor = 0;
  let failures = 0;
  let isOver = false;

  function open(): void {
    options.onState({ kind: "connecting" });
    const { rows, columns } = options.size();
    const url = new URL(options.path, location.href);
    url.protocol = location.protocol === "https:" ? "wss:" : "ws:";
    url.searchParams.set("cursor", String(cursor));
    if (options.isViewOnly) url.searchParams.set("view_only", "true");
    else {
      url.searchParams.set("rows", String(rows));
      url.searchParams.set("columns", String(columns));
    }
    const opened = new WebSocket(url);
    opened.binaryType = "arraybuffer";
    let silence = setTimeout(() => opened.close(), SILENCE_MS_MAX);
    opened.onmessage = ({ data }: MessageEvent<string | ArrayBuffer>) => {
      clearTimeout(silence);
      silence = setTimeout(() => opened.close(), SILENCE_MS_MAX);
      if (typeof data !== "string") {
        cursor += data.byteLength;
        options.onOutput(new Uint8Array(data));
        return;
      }
      const said = told(data);
      if (said.cursor !== undefined) cursor = said.cursor;
      if (said.state?.kind === "open") failures = 0;
      if (said.state?.kind === "ended") isOver = true;
      if (said.state) options.onState(said.state);
    };
    opened.onclose = () => {
      clearTimeout(silence);
      if (isOver) return;
      failures += 1;
      if (failures > ATTEMPTS_MAX) {
        options.onState({ kind: "ended", words: "There is no connection to this terminal. Open it again to try once more." });
        return;
      }
      options.onState({ kind: "waiting" });
      setTimeout(open, pauseMs(failures));
    };
    socket = opened;
  }

  function sendIfOpen(data: string | Uint8Array<ArrayBuffer>): void {
    if (socket?.readyState === WebSocket.OPEN) socket.send(data);
  }

  open();
  return {
    write: (data) => sendIfOpen(new Uint8Array(data)),
    resize: (rows, columns) => {
      if (!options.isViewOnly) sendIfOpen(JSON.stringify({ type: "resize", rows, columns }));
    },
  };
}
