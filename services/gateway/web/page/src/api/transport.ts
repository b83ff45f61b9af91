/**
 * How requests leave: with the CSRF token of the session, with a key that makes repeating safe, and
 * again after an answer that asks for it.
 */
import { problemOf, Unreachable } from "./problem.ts";

const ATTEMPTS_MAX = 3;
const RETRY_MS_MAX = 5_000;
const SAFE = new Set(["GET", "HEAD"]);
const SIGN_IN = "/api/v1/sign-in";

let onSignedOut = (): void => {};

/** Name who is told that the session is over. */
export function whenSignedOut(tell: () => void): void {
  onSignedOut = tell;
}

/** Say so if a response means that the session is over, also for requests that leave in another way. */
export function noticeSignOut(status: number): void {
  if (status === 401) onSignedOut();
}

/** Return 128 random bits; `crypto.randomUUID` exists on secure origins only. */
export function randomKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (each) => each.toString(16).padStart(2, "0")).join("");
}

export function csrfToken(): string | undefined {
  const found = document.cookie.split("; ").find((each) => /^(__Host-)?parley_csrf=/.test(each));
  return found?.slice(found.indexOf("=") + 1);
}

/** Send a request, and send it again with the same key while that may help. */
export async function send(request: Request): Promise<Response> {
  const isSafe = SAFE.has(request.method);
  if (!isSafe) {
    const token = csrfToken();
    if (token) request.headers.set("X-CSRF-Token", token);
    if (request.method === "POST" && !request.headers.has("Idempotency-Key")) {
      request.headers.set("Idempotency-Key", randomKey());
    }
  }
  const mayRepeat = isSafe || request.headers.has("Idempotency-Key");
  for (let attempt = 1; ; attempt += 1) {
    const isLast = !mayRepeat || attempt === ATTEMPTS_MAX;
    try {
      const response = await fetch(request.clone());
      if (!mayPass(response) || isLast) return checked(request, response);
      await pause(retryAfterMs(response) ?? delayMs(attempt), request.signal);
    } catch (error) {
      if (request.signal.aborted) throw error;
      if (isLast) throw new Unreachable();
      await pause(delayMs(attempt), request.signal);
    }
  }
}

/** Whether the server is starting, or a proxy answered in its place, without a problem document. */
function mayPass({ status, headers }: Response): boolean {
  if (status === 502 || status === 504) return !headers.get("Content-Type")?.startsWith("application/problem+json");
  return status === 503;
}

function checked(request: Request, response: Response): Response {
  const path = new URL(request.url).pathname;
  if (!path.startsWith(SIGN_IN)) noticeSignOut(response.status);
  return response;
}

export function delayMs(attempt: number): number {
  return 300 * 2 ** (attempt - 1) * (0.75 + Math.random() / 2);
}

function retryAfterMs(response: Response): number | undefined {
  const seconds = Number(response.headers.get("Retry-After"));
  return seconds > 0 ? Math.min(seconds * 1000, RETRY_MS_MAX) : undefined;
}

/** Wait, or throw the reason of the signal. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason as Error);
    });
  });
}

export { problemOf };
