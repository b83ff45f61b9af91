/**
 * Rows in groups, each of which is rendered and laid out by itself: while an answer comes only the
 * last one changes. A row never moves into another group, since it would be made anew there.
 */
import { useMemo, useRef } from "react";
import type { Message } from "../api/types.ts";
import { afterGap, type ChatState } from "../stream/chat-state.ts";
import { grouped, itemsOf, sameItem } from "./items.ts";
import { NO_ACTIONS, NO_TURNS, type Row, rowsIn, rowsOf, turnsOf } from "./rows.ts";

/** A message of the person begins a group if the one before has so many messages. */
const MESSAGES_MIN = 30;

/** The ids of messages at which groups begin, in order. */
export interface Starts {
  ids: readonly number[];
  /** The newest message of the person for which that was decided. */
  decidedId: number;
}

export const NO_STARTS: Starts = { ids: [], decidedId: 0 };

export interface Group {
  key: string;
  rows: readonly Row[];
}

/** Return where groups begin once there are other messages: each page and many a turn is one. */
export function startsAfter(was: Starts, messages: readonly Message[], gapAt: number): Starts {
  const ids = new Set([...was.ids, ...[messages[0], messages[gapAt]].flatMap((each) => each?.id ?? [])]);
  const turn = messages.findLastIndex((each) => each.role === "user");
  const turnId = messages[turn]?.id ?? 0;
  const isNew = turnId > was.decidedId;
  if (isNew && turn - messages.findLastIndex((each, place) => place <= turn && ids.has(each.id)) >= MESSAGES_MIN) {
    ids.add(turnId);
  }
  if (!isNew && ids.size === was.ids.length) return was;
  return { ids: [...ids].toSorted((a, b) => a - b), decidedId: Math.max(turnId, was.decidedId) };
}

/** Put rows into the groups that they belong to. */
export function groupsOf(rows: readonly Row[], { ids }: Starts): Group[] {
  const groups: { key: string; rows: Row[] }[] = [];
  let next = 0;
  for (const row of rows) {
    while ((ids[next] ?? Number.POSITIVE_INFINITY) <= row.item.beginId && next < ids.length) next += 1;
    const key = `g${ids[next - 1] ?? 0}`;
    if (groups.at(-1)?.key === key) groups.at(-1)!.rows.push(row);
    else groups.push({ key, rows: [row] });
  }
  return groups;
}

/** Put groups behind others; the rows of a group that is in both are joined. */
export function joined(before: readonly Group[], after: readonly Group[]): readonly Group[] {
  const [last, first] = [before.at(-1), after[0]];
  if (!last || last.key !== first?.key) return [...before, ...after];
  return [...before.slice(0, -1), { key: last.key, rows: [...last.rows, ...first.rows] }, ...after.slice(1)];
}

/** Return groups, each that is as it was as the same object. */
export function kept(before: readonly Group[], now: readonly Group[]): readonly Group[] {
  const known = new Map(before.map((each) => [each.key, each]));
  return now.map((group) => {
    const was = known.get(group.key);
    return was && sameRows(was.rows, group.rows) ? was : group;
  });
}

function sameRows(was: readonly Row[], is: readonly Row[]): boolean {
  return was === is || (was.length === is.length && was.every((row, place) => sameRow(row, is[place]!)));
}

function sameRow(was: Row, is: Row): boolean {
  return (
    was === is ||
    (was.isLastOfTurn === is.isLastOfTurn &&
      was.isRunning === is.isRunning &&
      was.actions === is.actions &&
      was.item.key === is.item.key &&
      sameItem(was.item, is.item))
  );
}

export interface Groups {
  /** Those before the gap. */
  linked: readonly Group[];
  groups: readonly Group[];
  /** Whether a preview is shown. */
  hasTail: boolean;
}

/** Return the rows of a chat. What was before its last turn is looked at again only when it changed. */
export function useGroups(chat: ChatState, isBusy: boolean): Groups {
  const { messages, gapAfter, tail, previewed } = chat;
  const starts = useRef(NO_STARTS);
  const turns = useRef(NO_TURNS);
  const last = useRef<readonly Group[]>([]);
  const settled = useMemo(() => {
    const at = afterGap({ messages, gapAfter });
    const turn = Math.max(at, messages.findLastIndex((each) => each.role === "user"));
    const answer = Math.max(turn, messages.findLastIndex((each) => each.role === "assistant"));
    starts.current = startsAfter(starts.current, messages, at);
    const linked = turnsOf(messages.slice(0, at), previewed, turns.current);
    const before = turnsOf(messages.slice(at, turn), previewed, turns.current);
    turns.current = new Map([...linked, ...before]);
    return {
      linked: kept(last.current, groupsOf(rowsIn(linked), starts.current)),
      before: kept(last.current, groupsOf(rowsIn(before), starts.current)),
      steps: itemsOf(messages.slice(turn, answer), null, previewed),
      growing: messages.slice(answer),
    };
  }, [messages, gapAfter, previewed]);
  const actions = chat.required?.actions ?? NO_ACTIONS;
  return useMemo(() => {
    const items = grouped([...settled.steps, ...itemsOf(settled.growing, tail, previewed)]);
    const turn = groupsOf(rowsOf(items, isBusy, actions), starts.current);
    const all = kept(last.current, [...settled.linked, ...joined(settled.before, turn)]);
    last.current = all;
    const newest = items.at(-1);
    return {
      linked: all.slice(0, settled.linked.length),
      groups: all.slice(settled.linked.length),
      hasTail: newest?.kind === "assistant" && newest.isLive,
    };
  }, [settled, tail, previewed, isBusy, actions]);
}
