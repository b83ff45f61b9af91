/**
 * One tab of a browser reads what all tabs need; the others hear it from there. A lock of the
 * browser says which: it passes to another tab when its holder is closed or killed.
 */
export interface Shared<E> {
  close: () => void;
  /** Tell all tabs, this one included. */
  publish: (event: E) => void;
}

interface SharedOptions<E> {
  name: string;
  /** Called in every tab. */
  onEvent: (event: E) => void;
  /** Called in the tab that leads; returns how to stop. */
  lead: (publish: (event: E) => void) => () => void;
}

export function share<E>({ name, onEvent, lead }: SharedOptions<E>): Shared<E> {
  const channel = new BroadcastChannel(name);
  const stopping = new AbortController();
  channel.onmessage = (message) => onEvent(message.data as E);

  function publish(event: E): void {
    onEvent(event);
    channel.postMessage(event);
  }

  function work(): Promise<void> {
    const stop = lead(publish);
    return new Promise((resolve) => {
      stopping.signal.addEventListener("abort", () => {
        stop();
        resolve();
      });
    });
  }

  // Locks exist on secure origins only; elsewhere every tab reads for itself.
  if (navigator.locks) {
    navigator.locks.request(name, { signal: stopping.signal }, work).catch(() => {});
  } else {
    void work();
  }
  return {
    publish,
    close: () => {
      stopping.abort();
      channel.close();
    },
  };
}
