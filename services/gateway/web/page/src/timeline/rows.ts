/** Rows of the timeline by the turns that they are of: those of a turn that is as it was are not made again. */
import type { Action, Message } from "../api/types.ts";
import type { ChatState } from "../stream/chat-state.ts";
import { endsTurn, grouped, type Item, itemsOf } from "./items.ts";

export const NO_ACTIONS: readonly Action[] = [];

export interface Row {
  item: Item;
  isLastOfTurn: boolean;
  /** Whether calls of it may still run. */
  isRunning: boolean;
  actions: readonly Action[];
}

interface Turn {
  messages: readonly Message[];
  /** The keys of the previews that its messages had. */
  previews: readonly (string | undefined)[];
  rows: readonly Row[];
}

/** Turns in their order, each by the id of its first message. */
export type Turns = ReadonlyMap<number, Turn>;

export const NO_TURNS: Turns = new Map();

/** Return rows; the last ones may run, and the last one has the actions that wait for the person. */
export function rowsOf(items: readonly Item[], isBusy: boolean, actions: readonly Action[]): Row[] {
  return items.map((item, place) => ({
    item,
    isLastOfTurn: endsTurn(items, place),
    isRunning: isBusy && place >= items.length - 2,
    actions: place === items.length - 1 ? actions : NO_ACTIONS,
  }));
}

/** Return the turns of messages that do not change any more; each that is known stays the same object. */
export function turnsOf(messages: readonly Message[], previewed: ChatState["previewed"], known: Turns): Turns {
  const turns = new Map<number, Turn>();
  for (let begin = 0; begin < messages.length; ) {
    // No row has parts of two turns, so each turn can be looked at by itself.
    let end = begin + 1;
    while (end < messages.length && messages[end]!.role !== "user") end += 1;
    const { id } = messages[begin]!;
    const was = known.get(id);
    turns.set(id, was && isSame(was, messages, begin, end, previewed) ? was : newTurn(messages.slice(begin, end), previewed));
    begin = end;
  }
  return turns;
}

function newTurn(messages: readonly Message[], previewed: ChatState["previewed"]): Turn {
  const rows = rowsOf(grouped(itemsOf(messages, null, previewed)), false, NO_ACTIONS);
  return { messages, previews: messages.map(({ id }) => previewed[id]), rows };
}

function isSame(was: Turn, messages: readonly Message[], begin: number, end: number, previewed: ChatState["previewed"]): boolean {
  return (
    was.messages.length === end - begin &&
    was.messages.every((each, place) => each === messages[begin + place] && was.previews[place] === previewed[each.id])
  );
}

export function rowsIn(turns: Turns): Row[] {
  return [...turns.values()].flatMap((each) => each.rows);
}
