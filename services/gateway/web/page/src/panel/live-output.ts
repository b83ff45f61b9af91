/** The output of a process as it grows: each request waits for what comes after the last one. */
import { useEffect, useState } from "react";
import { answered, api } from "../api/client.ts";
import { Problem } from "../api/problem.ts";
import { appended } from "./output-text.ts";

const BYTES_MAX = 65_536;
const WAIT_S = 20;
const PAUSE_MS = 1_000;

export interface LiveOutput {
  /** Null until the first answer. */
  text: string | null;
  problem: Problem | null;
}

export function useLiveOutput(chatId: string, processId: string): LiveOutput {
  const [output, setOutput] = useState<LiveOutput>({ text: null, problem: null });
  useEffect(() => {
    const stop = new AbortController();
    void follow(chatId, processId, stop.signal, setOutput);
    return () => stop.abort();
  }, [chatId, processId]);
  return output;
}

type Change = (change: (was: LiveOutput) => LiveOutput) => void;

async function follow(chatId: string, processId: string, signal: AbortSignal, change: Change): Promise<void> {
  let cursor: number | null = null;
  while (!signal.aborted) {
    try {
      const query: { until: "snapshot" | "output"; max_bytes: number; wait?: number; cursor?: number } =
        cursor === null
          ? { until: "snapshot", max_bytes: BYTES_MAX }
          : { until: "output", wait: WAIT_S, cursor, max_bytes: BYTES_MAX };
      const params = { path: { chat_id: chatId, process_id: processId }, query };
      const data = await answered(
        api.GET("/api/v1/chats/{chat_id}/processes/{process_id}/output", { params, signal }),
      );
      change((was) => ({ text: appended(was.text, data.text), problem: null }));
      const isSame = cursor === data.next_cursor;
      cursor = data.next_cursor;
      const state = data.process?.state;
      if (isSame && state !== "running" && state !== "starting") return;
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Problem && error.status < 500 && error.status !== 429) {
        change((was) => ({ ...was, problem: error }));
        return;
      }
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  }
}
