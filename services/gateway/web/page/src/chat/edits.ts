/** The edit of a message on its way: sent until it is answered, once, while its text stays in the composer. */
import { useEffect, useRef, useState } from "react";
import { randomKey } from "../api/transport.ts";
import { untilAnswered } from "../outbox/until-answered.ts";

export interface Edits {
  /** Whether an edit was sent that nothing has answered yet. */
  isWaiting: boolean;
  /** The key of an edit, which is the same for the same edit. */
  keyOf: (body: object) => string;
  /** Send an edit until it is answered; undefined if its composer was left by then. */
  stored: <T>(request: () => Promise<T>) => Promise<T | undefined>;
  giveUp: () => void;
}

export function useEdits(): Edits {
  const [isWaiting, setWaiting] = useState(false);
  const last = useRef({ text: "", key: "" });
  const giving = useRef(new AbortController());
  const isShown = useRef(true);
  useEffect(() => {
    isShown.current = true;
    return () => {
      isShown.current = false;
    };
  }, []);

  return {
    isWaiting,
    keyOf(body) {
      const text = JSON.stringify(body);
      if (last.current.text !== text) last.current = { text, key: randomKey() };
      return last.current.key;
    },
    async stored(request) {
      const { signal } = giving.current;
      try {
        const answer = await untilAnswered(request, { signal, onWaiting: () => setWaiting(true) });
        return isShown.current ? answer : undefined;
      } catch (error) {
        if (signal.aborted) return undefined;
        throw error;
      } finally {
        setWaiting(false);
      }
    },
    giveUp: () => giving.current.abort(),
  };
}
