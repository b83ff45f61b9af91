/** The output of a process that is followed, as a pure fold over its events. */
import type { ChatEvent } from "../api/types.ts";
import type { components } from "../api/schema.d.ts";

export type Process = components["schemas"]["Process"];

/** So much of the end of an output is kept. */
export const KEPT_CHARACTERS = 200_000;

export interface OutputState {
  /** Null until the first event. */
  text: string | null;
  /** Where the next output begins. */
  cursor: number;
  /** The process as it ended. */
  process: Process | null;
  /** Why it is not followed any longer. */
  problem: string | null;
  isOver: boolean;
}

export const UNREAD: OutputState = { text: null, cursor: 0, process: null, problem: null, isOver: false };

const PROCESS_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Return whether a text can be the id of a process. */
export function isProcessId(text: string): boolean {
  return PROCESS_ID.test(text);
}

/** Return the process that an event is about; null for events of the chat. */
export function processOf(event: ChatEvent): string | null {
  if (event.type === "process_output") return event.process_output.process_id;
  if (event.type === "process_ended") return event.process_ended.process_id;
  return null;
}

/**
 * Fold one event of the process. Output that is known already changes nothing, nor do events of a
 * stream that is being replaced, which is further than a reader that has just begun: the end of a
 * process comes after output, be it empty.
 */
export function applyOutput(state: OutputState, event: ChatEvent): OutputState {
  if (state.isOver) return state;
  if (event.type === "process_output") {
    const { cursor, text, next_cursor } = event.process_output;
    if (cursor !== state.cursor) return state;
    return { ...state, text: `${state.text ?? ""}${text}`.slice(-KEPT_CHARACTERS), cursor: next_cursor };
  }
  if (event.type === "process_ended") {
    const { process, error } = event.process_ended;
    if (state.text === null && error === null) return state;
    return { ...state, process, problem: error?.message ?? null, isOver: true };
  }
  return state;
}
