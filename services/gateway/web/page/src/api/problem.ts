/** Errors of requests: a problem document of the server, or no answer at all. */
import { ahead, moment } from "../ui/format.ts";
import type { components } from "./schema.d.ts";

export type ProblemDocument = components["schemas"]["Problem"];

const DATED_FROM_MS = 90 * 60_000;

/** The server refused a request. */
export class Problem extends Error {
  readonly document: ProblemDocument;

  constructor(document: ProblemDocument) {
    super(document.detail || document.title);
    this.document = document;
  }

  get status(): number {
    return this.document.status;
  }

  get code(): string {
    return this.document.code;
  }

  /** What is wrong with a field of the body, such as `/title`, or with a part of it. */
  field(pointer: string): string | undefined {
    const errors = this.document.errors ?? [];
    return (errors.find((each) => each.pointer === pointer) ?? errors.find((each) => isAt(each.pointer, pointer)))?.detail;
  }
}

/** An error that fields of the screen say already. */
export class ShownAtFields extends Error {}

function isAt(pointer: string | undefined, field: string): boolean {
  return pointer === field || pointer?.startsWith(`${field}/`) === true;
}

/** Say what went wrong, without what is said at fields; empty if that is all. */
export function wordsBeside(error: unknown, fields: ReadonlySet<string>): string {
  const errors = error instanceof Problem ? (error.document.errors ?? []) : [];
  const others = errors.filter((each) => ![...fields].some((field) => isAt(each.pointer, field)));
  if (others.length === errors.length) return wordsOf(error);
  return others.map((each) => [each.pointer, each.detail].filter(Boolean).join(": ")).join(" ");
}

/** No answer came: the server or the network is away. */
export class Unreachable extends Error {
  constructor() {
    super("Parley cannot be reached. Check the connection; what you wrote is kept.");
  }
}

/**
 * Whether the same request may be taken a moment later: nothing answered, the server is starting, or a proxy answered in
 * its place. Whether it was taken already is not known, so it is only repeated under its key.
 */
export function isAway(error: unknown): boolean {
  if (error instanceof Unreachable || isOfProxy(error)) return true;
  return error instanceof Problem && error.status === 503 && error.document.retryable;
}

/** Whether a proxy gave a request up, which may be because of the request. */
export function isOfProxy(error: unknown): boolean {
  return error instanceof Problem && error.code === "INTERNAL" && (error.status === 502 || error.status === 504);
}

/** Say in a sentence what went wrong. */
export function wordsOf(error: unknown): string {
  if (error instanceof Problem) {
    const wait = error.document.retry_after_ms;
    const fields = (error.document.errors ?? []).map((each) => each.detail).filter(Boolean);
    const said = [error.message, ...fields.filter((each) => !error.message.includes(each))].join(" ");
    return wait ? `${said} ${againWords(wait)}` : said;
  }
  return error instanceof Error ? error.message : String(error);
}

/** Say when another attempt may be taken; of longer waits also the time of the day. */
function againWords(waitMs: number): string {
  const now = Date.now();
  const at = now + waitMs;
  return waitMs < DATED_FROM_MS ? `Try again ${ahead(at, now)}.` : `Try again ${ahead(at, now)}, on ${moment(at)}.`;
}

/** Whether something does not exist, or may not be seen: the two are not told apart. */
export function isAbsent(error: unknown): boolean {
  return error instanceof Problem && (error.status === 404 || error.status === 403);
}

/** Make an error of an answer that is not a success. */
export async function problemOf(response: Response): Promise<Problem> {
  const text = await response.text().catch(() => "");
  try {
    const document = JSON.parse(text) as ProblemDocument;
    if (typeof document.status === "number") return new Problem(document);
  } catch {
    // A proxy answered in place of the gateway.
  }
  return new Problem({
    type: "about:blank",
    title: response.statusText || "The request failed",
    status: response.status,
    detail: `The server answered ${response.status}.`,
    instance: "",
    code: "INTERNAL",
    retryable: response.status >= 500,
  });
}
