/** Answering what a chat waits for. */
import { useState } from "react";
import { answered, api } from "../../api/client.ts";
import { wordsOf } from "../../api/problem.ts";
import { queryClient } from "../../api/queries.ts";
import type { components } from "../../api/schema.d.ts";
import type { Action } from "../../api/types.ts";
import { announce } from "../../ui/announce.tsx";

type AnswerBody = components["schemas"]["AnswerActionBody"];

export interface Answering {
  /** Send an answer; with a key of one's own, equal answers of several tabs are one. */
  answer: (body: AnswerBody, key?: string) => Promise<void>;
  problem: string;
  /** What the server refused, to mark its fields. */
  error: unknown;
  isBusy: boolean;
}

export function useAnswer(action: Action): Answering {
  const [error, setError] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  async function answer(body: AnswerBody, key?: string): Promise<void> {
    setBusy(true);
    setError(undefined);
    try {
      await answered(
        api.POST("/api/v1/chats/{chat_id}/actions/{action_id}/answer", {
          params: {
            path: { chat_id: action.chat_id, action_id: action.id ?? "" },
            ...(key ? { header: { "Idempotency-Key": key } } : {}),
          },
          body,
        }),
      );
      announce("Your answer was stored.");
      void queryClient.invalidateQueries({ queryKey: ["actions"] });
    } catch (caught) {
      setError(caught);
      setBusy(false);
    }
  }
  return { answer, problem: error === undefined ? "" : wordsOf(error), error, isBusy };
}
