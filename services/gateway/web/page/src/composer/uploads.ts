/** Files of a message: stored on the server as soon as they are chosen. */
import { problemOf } from "../api/problem.ts";
import { send } from "../api/transport.ts";
import type { StoredFile } from "../api/types.ts";
import type { DraftFile } from "./drafts.ts";

export const PASTED_LINES = 10;
export const PASTED_CHARACTERS = 1000;

/** Whether pasted text is long enough to become a file. */
export function isLong(text: string): boolean {
  return text.length >= PASTED_CHARACTERS || text.split("\n").length >= PASTED_LINES;
}

export async function upload(file: File): Promise<DraftFile> {
  const address = new URL(`/api/v1/files?name=${encodeURIComponent(file.name)}`, location.origin);
  const type = file.type || "text/plain";
  const request = new Request(address, { method: "POST", headers: { "Content-Type": type }, body: file });
  const response = await send(request);
  if (!response.ok) throw await problemOf(response);
  const stored = (await response.json()) as StoredFile;
  return { id: stored.id, name: stored.name, mediaType: stored.media_type, sizeBytes: stored.size_bytes };
}
