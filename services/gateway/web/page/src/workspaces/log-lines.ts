/** What the preparation of a workspace printed, as it comes. */
import { useEffect, useRef, useState } from "react";
import { wordsOf } from "../api/problem.ts";
import type { components } from "../api/schema.d.ts";
import { connect } from "../stream/connection.ts";

export type LogLine = components["schemas"]["SetupLogLine"];
type WorkspaceEvent = components["schemas"]["WorkspaceEvent"];

/** Of more lines than these the newest are kept. */
export const LINES_MAX = 2_000;
/** All lines that exist have come after such a silence. */
const SILENCE_MS = 1_500;

/** Put lines behind the known ones; those that are known are left out. */
export function withLines(known: readonly LogLine[], events: readonly WorkspaceEvent[]): readonly LogLine[] {
  const last = known.at(-1)?.sequence ?? 0;
  const lines = events.flatMap((each) => (each.type === "log_line" && each.log_line.sequence > last ? [each.log_line] : []));
  return lines.length ? [...known, ...lines].slice(-LINES_MAX) : known;
}

export interface SetupLog {
  lines: readonly LogLine[];
  /** Whether all lines so far were read. */
  isRead: boolean;
  problem: string;
}

const UNREAD: SetupLog = { lines: [], isRead: false, problem: "" };

/** Read the log of a workspace while it is shown. Only while it is prepared a connection stays open for it. */
export function useSetupLog(workspaceId: string, isShown: boolean, isPreparing: boolean): SetupLog {
  const [log, setLog] = useState(UNREAD);
  const last = useRef(0);
  useEffect(() => {
    if (!isShown) return;
    let silence: ReturnType<typeof setTimeout> | undefined;
    const connection = connect<WorkspaceEvent>({
      address: () => `/api/v1/workspaces/${workspaceId}/events?after=${last.current}`,
      cursor: null,
      onEvents: (arrived) => {
        const events = arrived.map(({ event }) => event);
        setLog((was) => ({ ...was, lines: withLines(was.lines, events) }));
        for (const each of events) if (each.type === "log_line") last.current = Math.max(last.current, each.log_line.sequence);
        clearTimeout(silence);
        silence = setTimeout(read, SILENCE_MS);
      },
      onLink: (_link, problem) => {
        if (problem) setLog((was) => ({ ...was, isRead: true, problem: wordsOf(problem) }));
      },
    });
    function read(): void {
      setLog((was) => ({ ...was, isRead: true }));
      if (!isPreparing) connection.close();
    }
    return () => {
      clearTimeout(silence);
      connection.close();
    };
  }, [workspaceId, isShown, isPreparing]);
  return log;
}
