/** Short messages about what a command did or could not do. */
import { useSyncExternalStore } from "react";
import { wordsOf } from "../api/problem.ts";
import { IconButton } from "./button.tsx";
import { Notice } from "./states.tsx";
import { createStore } from "./stores/store.ts";

interface Toast {
  key: number;
  text: string;
  isProblem: boolean;
}

const SHOWN_MS = 8_000;
const store = createStore<readonly Toast[]>([]);
let last = 0;

function show(text: string, isProblem: boolean): void {
  last += 1;
  const key = last;
  store.update((was) => [...was.slice(-2), { key, text, isProblem }]);
  setTimeout(() => dismiss(key), SHOWN_MS);
}

function dismiss(key: number): void {
  store.update((was) => was.filter((each) => each.key !== key));
}

export function say(text: string): void {
  show(text, false);
}

export function complain(error: unknown): void {
  show(wordsOf(error), true);
}

export function Toasts() {
  const toasts = useSyncExternalStore(store.subscribe, store.get);
  return (
    <div className="toasts" role="status" aria-live="polite">
      {toasts.map((each) => (
        <Notice
          key={each.key}
          kind={each.isProblem ? "bad" : "plain"}
          icon={each.isProblem ? "warn" : "check"}
          actions={<IconButton icon="close" label="Dismiss" onClick={() => dismiss(each.key)} />}
        >
          {each.text}
        </Notice>
      ))}
    </div>
  );
}
