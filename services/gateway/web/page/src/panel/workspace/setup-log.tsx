/** What the preparation of a workspace printed: clone, copies and its setup script. */
import { useState } from "react";
import type { components } from "../../api/schema.d.ts";
import { Output } from "../../cards/execute.tsx";
import { Skeleton } from "../../ui/states.tsx";
import { useSetupLog } from "../../workspaces/log-lines.ts";

type Workspace = components["schemas"]["Workspace"];

export function SetupLog({ workspace }: { workspace: Workspace }) {
  const isPreparing = workspace.state === "pending" || workspace.state === "preparing";
  // Open by itself where people look for it.
  const [isOpen, setOpen] = useState(isPreparing || workspace.state === "failed");
  const { lines, isRead, problem } = useSetupLog(workspace.id, isOpen, isPreparing);
  const text = lines.map((each) => `${each.text}\n`).join("");
  return (
    <details className="panel-file" open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Log of its preparation</summary>
      {problem && <p className="field-problem">{problem}</p>}
      {text && <Output text={text} isRunning={isPreparing} />}
      {!text && !problem && (isRead ? <p className="panel-note">Its preparation printed nothing.</p> : <Skeleton rows={2} />)}
    </details>
  );
}
