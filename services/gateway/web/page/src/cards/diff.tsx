/** A unified difference of one file, with the numbers of its lines. */
import { memo } from "react";
import { Visible } from "../ui/visible.tsx";

const LINES_MAX = 800;

interface Line {
  kind: "added" | "deleted" | "same" | "place";
  text: string;
  number: number | null;
}

/** What is said of a file before its first lines, and is worth reading. */
const FACT = /^(Binary files|rename |copy |old mode|new mode)/;

/** Return the lines of a difference. Lines that look like a header are such before the first place alone. */
export function linesOf(diff: string): Line[] {
  const lines: Line[] = [];
  let number = 0;
  let old = 0;
  let isHeader = /^@@ /m.test(diff) || /^Binary files/m.test(diff);
  for (const line of diff.replace(/\n$/, "").split("\n")) {
    const place = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/.exec(line);
    if (line.startsWith("diff ")) isHeader = true;
    if (place) {
      isHeader = false;
      old = Number(place[1]);
      number = Number(place[2]);
      lines.push({ kind: "place", text: line, number: null });
    } else if (isHeader) {
      if (FACT.test(line)) lines.push({ kind: "place", text: line, number: null });
    } else if (line.startsWith("\\ ")) {
      continue;
    } else if (line.startsWith("+")) {
      lines.push({ kind: "added", text: line.slice(1), number });
      number += 1;
    } else if (line.startsWith("-")) {
      lines.push({ kind: "deleted", text: line.slice(1), number: old });
      old += 1;
    } else {
      lines.push({ kind: "same", text: line.slice(1), number });
      number += 1;
      old += 1;
    }
  }
  return lines;
}

const SIGNS = { added: "+", deleted: "−", same: " ", place: "" };

export const Diff = memo(function Diff({ diff, label }: { diff: string; label: string }) {
  const lines = linesOf(diff);
  return (
    <div className="diff" tabIndex={0} role="region" aria-label={label}>
      <table>
        <tbody>
          {lines.slice(0, LINES_MAX).map((line, index) => (
            <tr key={index} className={`is-${line.kind}`}>
              <td className="diff-number">{line.number ?? ""}</td>
              <td className="diff-sign">{SIGNS[line.kind]}</td>
              <td className="diff-text">
                <Visible>{line.text}</Visible>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {lines.length > LINES_MAX && <p className="card-note">{lines.length - LINES_MAX} more lines.</p>}
    </div>
  );
});
