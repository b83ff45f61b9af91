/** A value that components subscribe to. */
export interface Store<T> {
  get: () => T;
  set: (next: T) => void;
  update: (change: (was: T) => T) => void;
  subscribe: (tell: () => void) => () => void;
}

export function createStore<T>(initial: T): Store<T> {
  let value = initial;
  const told = new Set<() => void>();
  function set(next: T): void {
    if (Object.is(value, next)) return;
    value = next;
    for (const tell of told) tell();
  }
  return {
    get: () => value,
    set,
    update: (change) => set(change(value)),
    subscribe: (tell) => {
      told.add(tell);
      return () => told.delete(tell);
    },
  };
}
