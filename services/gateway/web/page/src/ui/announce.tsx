/** One polite live region for the page: it announces turns, never tokens. */
import { useSyncExternalStore } from "react";
import { createStore } from "./stores/store.ts";

const store = createStore("");

/** Have assistive technology say something when it has time. */
export function announce(text: string): void {
  // The same text twice is said twice only if it differs.
  store.set(store.get() === text ? `${text}\u00a0` : text);
}

export function LiveRegion() {
  const text = useSyncExternalStore(store.subscribe, store.get);
  return (
    <div className="visually-hidden" role="status" aria-live="polite">
      {text}
    </div>
  );
}
