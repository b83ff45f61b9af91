/** Calls that make, start and stop the workspace of a chat. */
import { Visible } from "../ui/visible.tsx";
import { Card } from "./card.tsx";
import { Output, Problem } from "./execute.tsx";
import { argsOf, type CardProps, record, string } from "./outcome.ts";

const VERBS: Record<string, string> = { create_workspace: "Create", start_workspace: "Start", stop_workspace: "Stop" };

export function WorkspaceCard({ call, result, standing }: CardProps) {
  const told = record(result?.result);
  const name = string(told.workspace_name) || string(argsOf(call).name);
  const log = Array.isArray(told.log) ? told.log.map(string) : [];
  const facts: [string, string][] = [
    ["Directory", string(told.directory)],
    ["Branch", string(told.git_branch)],
  ];
  const shown = facts.filter(([, value]) => value);
  const rests = restWords(call.tool_name, told);
  return (
    <Card
      icon="folder"
      standing={standing}
      isOpen={standing === "failed"}
      label={<>{VERBS[call.tool_name]} workspace {name && <code><Visible>{name}</Visible></code>}</>}
    >
      {result?.outcome && (
        <>
          {rests && <p className="card-note">{rests}</p>}
          <dl className="answers">
            {shown.map(([what, value]) => (
              <div key={what}>
                <dt>{what}</dt>
                <dd><Visible>{value}</Visible></dd>
              </div>
            ))}
          </dl>
          {standing === "unknown" && <p className="card-note">It is not known whether this call ran. Look before you repeat it.</p>}
          <Problem told={told} />
          <Output text={log.join("\n")} isRunning={false} />
        </>
      )}
    </Card>
  );
}

/** Say why nothing had to be done. */
function restWords(tool: string, told: Record<string, unknown>): string {
  if (told.already_exists === true) return "The chat had this workspace already.";
  if (told.no_build === true) return tool === "stop_workspace" ? "It did not run." : "It ran already.";
  return "";
}
