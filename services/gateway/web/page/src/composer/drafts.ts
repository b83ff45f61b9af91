/** What was written and not sent yet, by chat; it survives reloads. */
import type { Reference } from "./references.ts";
import { readStored, writeStored } from "../ui/stores/stored.ts";

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

/** Put a draft that was refused before what was written since. */
export function withRefused(since: Draft, sent: Draft): Draft {
  // A draft that stays stored until it was sent may be here already.
  if (JSON.stringify(since) === JSON.stringify(sent)) return sent;
  const isNew = (file: DraftFile): boolean => !sent.files.some((each) => each.id === file.id);
  return {
    text: [sent.text, since.text].filter((each) => each.trim() !== "").join("\n\n"),
    files: [...sent.files, ...since.files.filter(isNew)],
    references: [...sent.references, ...since.references],
  };
}

const CHANGED = "parley:draft";

/** Change the draft of a composer that is gone; one that is shown in its place takes it over. */
export function changeDraft(place: string, change: (was: Draft) => Draft): void {
  writeDraft(place, change(readDraft(place)));
  dispatchEvent(new CustomEvent(CHANGED, { detail: place }));
}

/** Take what a composer that is gone left in the draft of its place, until the returned function is called. */
export function onDraftChanged(place: string, take: (draft: Draft) => void): () => void {
  const listener = (event: Event): void => {
    if ((event as CustomEvent<string>).detail === place) take(readDraft(place));
  };
  addEventListener(CHANGED, listener);
  return () => removeEventListener(CHANGED, listener);
}
