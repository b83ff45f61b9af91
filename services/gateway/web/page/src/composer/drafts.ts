/** What was written and not sent yet, by chat; it survives reloads. */
import type { Reference } from "./references.ts";
import { readStored, writeStored } from "../ui/stored.ts";

export interface DraftFile {
  id: string;
  name: string;
  mediaType: string;
  sizeBytes: number;
}

export interface Draft {
  text: string;
  files: readonly DraftFile[];
  references: readonly Reference[];
}

export const NO_DRAFT: Draft = { text: "", files: [], references: [] };

function keyOf(place: string): string {
  return `parley.draft.${place}`;
}

/** Read the draft of a chat, or of the start (`new`). */
export function readDraft(place: string): Draft {
  try {
    const found = JSON.parse(readStored(keyOf(place)) ?? "null") as Partial<Draft> | null;
    return {
      text: String(found?.text ?? ""),
      files: Array.isArray(found?.files) ? found.files : [],
      references: Array.isArray(found?.references) ? found.references : [],
    };
  } catch {
    return NO_DRAFT;
  }
}

export function writeDraft(place: string, draft: Draft): void {
  const isEmpty = !draft.text && draft.files.length === 0 && draft.references.length === 0;
  writeStored(keyOf(place), isEmpty ? null : JSON.stringify(draft));
}

/** Remove a draft that was sent, unless another one was written since. */
export function forgetDraft(place: string, sent: Draft): void {
  if (JSON.stringify(readDraft(place)) === JSON.stringify(sent)) writeDraft(place, NO_DRAFT);
}
