/** A request that is repeated under its key until the server has answered it. */
import { isAway } from "../api/problem.ts";
import { pause } from "../api/transport.ts";

const RETRY_MS = 2_000;

interface Waiting {
  /** Ends the waiting; whether the request was taken is not known then. */
  signal: AbortSignal;
  /** Is told when the first attempt had no answer. */
  onWaiting: () => void;
  wait?: (ms: number, signal: AbortSignal) => Promise<void>;
}

/** Return the answer of a request, or throw how it was refused. */
export async function untilAnswered<T>(request: () => Promise<T>, { signal, onWaiting, wait = pause }: Waiting): Promise<T> {
  for (;;) {
    try {
      return await request();
    } catch (error) {
      if (!isAway(error)) throw error;
    }
    signal.throwIfAborted();
    onWaiting();
    await wait(RETRY_MS, signal);
  }
}
