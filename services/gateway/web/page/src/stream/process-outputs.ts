/**
 * The processes whose output is shown in a tab. They are read over the stream of the chat: its
 * address names each with the place at which its output continues, so that a stream that is opened
 * again loses and repeats nothing.
 */
import { createContext, use, useEffect, useSyncExternalStore } from "react";
import type { ChatEvent } from "../api/types.ts";
import { createStore, type Store } from "../ui/stores/store.ts";
import { applyOutput, type OutputState, processOf, UNREAD } from "./output-state.ts";

/** So many are followed at a time; others wait for one of them to end. */
export const FOLLOWED_MAX = 8;

export class ProcessOutputs {
  readonly states: Store<Readonly<Record<string, OutputState>>> = createStore({});
  /** Processes that were chosen to be followed in their cards, which are rendered anew with each turn. */
  readonly chosen: Store<ReadonlySet<string>> = createStore<ReadonlySet<string>>(new Set());
  readonly #readers = new Map<string, number>();
  readonly #onChange: () => void;

  /** Call back when the processes that are to be followed have changed. */
  constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  /** Follow a process; call what is returned to end that. */
  follow(processId: string): () => void {
    const count = this.#readers.get(processId);
    this.#readers.set(processId, (count ?? 0) + 1);
    if (count === undefined) {
      this.states.update((states) => ({ ...states, [processId]: UNREAD }));
      this.#onChange();
    }
    return () => this.#leave(processId);
  }

  #leave(processId: string): void {
    const left = (this.#readers.get(processId) ?? 1) - 1;
    this.#readers.set(processId, left);
    // A component that moves in the page leaves and comes back at once.
    if (left === 0) queueMicrotask(() => this.#forget(processId));
  }

  #forget(processId: string): void {
    if (this.#readers.get(processId) !== 0) return;
    this.#readers.delete(processId);
    const { [processId]: last, ...others } = this.states.get();
    this.states.set(others);
    if (!last?.isOver) this.#onChange();
  }

  /** Choose whether a process is followed in its card. */
  choose(processId: string, isChosen: boolean): void {
    const next = new Set(this.chosen.get());
    if (isChosen) next.add(processId);
    else next.delete(processId);
    this.chosen.set(next);
  }

  #active(): [string, OutputState][] {
    return Object.entries(this.states.get()).filter(([, state]) => !state.isOver);
  }

  /** The value of `processes` in the address of the stream; empty if none is followed. */
  get query(): string {
    return this.#active()
      .slice(0, FOLLOWED_MAX)
      .map(([processId, state]) => `${processId}:${state.cursor}`)
      .join(",");
  }

  /** Fold the events of processes, and return those of the chat. */
  take(events: readonly ChatEvent[]): ChatEvent[] {
    const rest = events.filter((event) => processOf(event) === null);
    if (rest.length === events.length) return rest;
    let states = this.states.get();
    for (const event of events) {
      const known = states[processOf(event) ?? ""];
      if (known) states = { ...states, [processOf(event) ?? ""]: applyOutput(known, event) };
    }
    const before = this.#active().length;
    this.states.set(states);
    if (before > FOLLOWED_MAX && this.#active().length < before) this.#onChange();
    return rest;
  }
}

/** The followed processes of the chat that is shown; null where none is. */
export const OutputsContext = createContext<ProcessOutputs | null>(null);

const NONE: Readonly<Record<string, OutputState>> = {};

/** Follow the output of a process while a component is there; null where no chat is shown. */
export function useProcessOutput(processId: string): OutputState | null {
  const outputs = use(OutputsContext);
  useEffect(() => outputs?.follow(processId), [outputs, processId]);
  const states = useSyncExternalStore(outputs?.states.subscribe ?? noSubscription, () => outputs?.states.get() ?? NONE);
  return outputs ? (states[processId] ?? UNREAD) : null;
}

/** For components outside of a chat. */
export function noSubscription(): () => void {
  return () => {};
}
