/** The edit of a message on its way: sent until it is answered, once, while its text stays in the composer. */
import { useEffect, useRef, useState } from "react";
import { randomKey } from "../api/transport.ts";
import { untilAnswered } from "../outbox/until-answered.ts";

export interface Edits {
  /** Whether an edit was sent that nothing has answered yet. */
  isWaiting: boolean;
  /** The key of an edit, which is the same for the same edit. */
  keyOf: (body: object) => string;
  /** Send an edit until it is answered; undefined if it was given up before. */
  stored: <T>(request: () => Promise<T>) => Promise<Answered<T> | undefined>;
  giveUp: () => void;
}

interface Answered<T> {
  answer: T;
  /** Whether the edit was not given up meanwhile: one that is under way may be answered all the same. */
  isWanted: boolean;
}

/**
 * Send edits of a message. One that has no answer is given up when another message is edited, when none is, and
 * when the chat is left: later it would delete what came after it, unseen.
 */
export function useEdits(messageId: number | undefined): Edits {
  const [isWaiting, setWaiting] = useState(false);
  const last = useRef({ text: "", key: "" });
  const giving = useRef(new AbortController());
  useEffect(() => {
    const controller = new AbortController();
    giving.current = controller;
    return () => controller.abort();
  }, [messageId]);

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
        return { answer, isWanted: !signal.aborted };
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
