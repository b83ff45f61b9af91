/** What an approval is about: the call with exactly the arguments that would be used. */
import type { Action } from "../../api/types.ts";
import { Icon } from "../../ui/icon.tsx";
import { countHidden, Visible } from "../../ui/visible.tsx";
import { callWords, record, string } from "../outcome.ts";
import { Json } from "../tool-card.tsx";
import { touchedBy } from "./touched.ts";

export function ApprovalFacts({ action }: { action: Action }) {
  const args = record(action.args);
  const command = string(args.command);
  const hidden = countHidden(JSON.stringify(args)) + countHidden(Object.values(args).map(string).join(""));
  return (
    <>
      <div className="action-head">
        <Icon name="shield" />
        <span>
          {action.kind === "loop" ? "The same call again and again: go on with" : "May it run"}{" "}
          <Visible>{callWords(action.tool_name)}</Visible>?
        </span>
      </div>
      {action.reason && <p className="action-reason">{action.reason}</p>}
      {command && (
        <div className="terminal">
          <div className="terminal-command"><span aria-hidden="true">$ </span><Visible>{command}</Visible></div>
        </div>
      )}
      <WouldTouch tool={action.tool_name} args={args} />
      <details open={!command}>
        <summary>
          All arguments for <code><Visible>{action.tool_name}</Visible></code>, as they would be used
        </summary>
        <Json value={args} isWhole />
      </details>
      {hidden > 0 && (
        <p className="card-problem">The arguments contain characters that are not shown by themselves; they are marked above.</p>
      )}
    </>
  );
}

function WouldTouch({ tool, args }: { tool: string; args: Record<string, unknown> }) {
  const touched = touchedBy(tool, args);
  if (!touched) return null;
  return (
    <p className="action-touched">
      {touched.what}{" "}
      {touched.names.map((name, index) => (
        <span key={name}>{index > 0 && ", "}<code><Visible>{name}</Visible></code></span>
      ))}
    </p>
  );
}
