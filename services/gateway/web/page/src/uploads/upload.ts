/** Files of a message: stored on the server as soon as they are chosen. */
import { problemOf, Unreachable } from "../api/problem.ts";
import { csrfToken, delayMs, noticeSignOut, randomKey } from "../api/transport.ts";
import type { StoredFile } from "../api/types.ts";
import type { DraftFile } from "../composer/drafts.ts";

export const PASTED_LINES = 10;
export const PASTED_CHARACTERS = 1000;
const ATTEMPTS_MAX = 3;

/** Whether pasted text is long enough to become a file. */
export function isLong(text: string): boolean {
  return text.length >= PASTED_CHARACTERS || text.split("\n").length >= PASTED_LINES;
}

/** Store a file, and tell the share that was sent as it grows; throw a `Problem` or `Unreachable`. */
export async function upload(file: File, onProgress: (share: number) => void, signal: AbortSignal): Promise<DraftFile> {
  // The server takes a key once, so sending again is safe.
  const key = randomKey();
  for (let attempt = 1; ; attempt += 1) {
    try {
      const response = await sent(file, key, onProgress, signal);
      if (response.status === 503 && attempt < ATTEMPTS_MAX) throw new Unreachable();
      return await storedIn(response);
    } catch (error) {
      if (!(error instanceof Unreachable) || attempt === ATTEMPTS_MAX) throw error;
      await new Promise((done) => setTimeout(done, delayMs(attempt)));
      signal.throwIfAborted();
    }
  }
}

/** Return the file that a response says is stored; throw a `Problem`. */
export async function storedIn(response: Response): Promise<DraftFile> {
  noticeSignOut(response.status);
  if (!response.ok) throw await problemOf(response);
  const stored = (await response.json()) as StoredFile;
  return { id: stored.id, name: stored.name, mediaType: stored.media_type, sizeBytes: stored.size_bytes };
}

/** Send a file by the only kind of request that tells how much of its body has left. */
function sent(file: File, key: string, onProgress: (share: number) => void, signal: AbortSignal): Promise<Response> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", `/api/v1/files?name=${encodeURIComponent(file.name)}`);
    request.setRequestHeader("Content-Type", file.type || "text/plain");
    request.setRequestHeader("Idempotency-Key", key);
    const token = csrfToken();
    if (token) request.setRequestHeader("X-CSRF-Token", token);
    request.upload.addEventListener("progress", (event) => {
      if (event.lengthComputable && event.total > 0) onProgress(event.loaded / event.total);
    });
    request.addEventListener("load", () => resolve(new Response(request.responseText, { status: request.status, statusText: request.statusText })));
    request.addEventListener("error", () => reject(new Unreachable()));
    request.addEventListener("abort", () => reject(signal.reason as Error));
    signal.addEventListener("abort", () => request.abort());
    request.send(file);
  });
}
