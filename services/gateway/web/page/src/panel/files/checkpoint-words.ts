/** What kept states of the files are called: by the turn that they are from. */
import type { Message } from "../../api/types.ts";
import { textOf } from "../../timeline/user-message.tsx";

/** The labels that the page gives, and that of the state before a restore, say nothing to people. */
const OF_PAGE = /^page-\d{4}-\d{2}-\d{2}T/;
const BEFORE_RESTORE = /^before-[0-9a-f]{16}$/;
const PROMPT_CHARACTERS_MAX = 70;

export interface CheckpointWords {
  /** The beginning of the prompt of the turn after or in which it was kept; empty if that is not known. */
  prompt: string;
  /** A label that somebody chose, or why it was kept; empty for one that was kept here. */
  note: string;
}

export function wordsOfCheckpoint(label: string, createdAt: string | null, messages: readonly Message[]): CheckpointWords {
  const note = BEFORE_RESTORE.test(label) ? "before a restore" : OF_PAGE.test(label) ? "" : label;
  return { prompt: createdAt ? promptAt(createdAt, messages) : "", note };
}

/** Return the beginning of the last prompt before a time. */
function promptAt(at: string, messages: readonly Message[]): string {
  const last = messages.findLast((each) => each.role === "user" && each.created_at !== null && Date.parse(each.created_at) <= Date.parse(at));
  if (!last) return "";
  const line = textOf(last.content).trim().split("\n")[0] ?? "";
  const characters = [...line];
  return characters.length > PROMPT_CHARACTERS_MAX ? `${characters.slice(0, PROMPT_CHARACTERS_MAX).join("").trimEnd()}…` : line;
}
