/** A turn as a time line: calls of the model, tools, and waits, each with its duration. */
import "./turns.css";
import { useMemo } from "react";
import type { Message } from "../api/types.ts";
import { Button } from "../ui/button.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { duration } from "../ui/format.ts";
import { Visible } from "../ui/visible.tsx";
import { type Span, timesOf, turnOf } from "./times.ts";

interface Props {
  messages: readonly Message[];
  messageId: number;
  onClose: () => void;
}

export default function TimesDialog({ messages, messageId, onClose }: Props) {
  const times = useMemo(() => timesOf(turnOf(messages, messageId)), [messages, messageId]);
  const { model, tool, wait } = times.sumMs;
  return (
    <Dialog title="Time line of this turn" wide onClose={onClose}>
      <p className="panel-note">
        {duration(times.totalMs)} in all: {duration(model)} of the model, {duration(tool)} of tools, {duration(wait)} of waits. The time of a
        tool includes that in which it waited for a person.
      </p>
      {times.spans.length === 0 && <p className="panel-note">Nothing of this turn is stored yet.</p>}
      <table className="turn-times">
        <tbody>
          {times.spans.map((span) => (
            <tr key={span.key} className={`is-${span.kind}`}>
              <th scope="row">
                <Visible>{span.label}</Visible>
              </th>
              <td className="turn-number">{span.endMs === null ? "not ended" : duration(span.endMs - span.startMs)}</td>
              <td className="turn-bar">
                <Bar span={span} totalMs={times.totalMs} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <div className="dialog-actions">
        <Button onClick={onClose}>Close</Button>
      </div>
    </Dialog>
  );
}

function Bar({ span, totalMs }: { span: Span; totalMs: number }) {
  const percent = (ms: number) => (100 * ms) / Math.max(1, totalMs);
  const width = Math.max(0.5, percent((span.endMs ?? totalMs) - span.startMs));
  return (
    <svg width="100%" height="0.8rem" aria-hidden="true">
      <rect x={`${Math.min(99.5, percent(span.startMs))}%`} y="0" width={`${width}%`} height="100%" rx="2" />
    </svg>
  );
}
