/** A call whose login at its server ended: it goes on once the person has connected again. */
import "./mcp.css";
import { useQuery } from "@tanstack/react-query";
import type { Action } from "../api/types.ts";
import { useAnswer } from "../cards/actions/answering.ts";
import { record, string } from "../cards/outcome.ts";
import { Button } from "../ui/button.tsx";
import { Icon } from "../ui/icon.tsx";
import { Visible } from "../ui/visible.tsx";
import { LoginButton, useConnected } from "./login.tsx";
import { serverIdOf, serverOf } from "./selection.ts";
import { servers } from "./servers.ts";

export function LoginCard({ action }: { action: Action }) {
  const args = record(action.args);
  const serverId = serverIdOf(string(args.url));
  const name = serverOf(action.tool_name, useQuery(servers).data?.items ?? []);
  const { answer, problem, isBusy } = useAnswer(action);
  // Several tabs hear of the same login; with the same key they give one answer.
  const goOn = () => void answer({ decision: "accept" }, `connected-${action.id}`);
  useConnected(serverId, goOn);
  return (
    <div className="action" role="group" aria-label="Login at a server">
      <div className="action-head">
        <Icon name="key" />
        <span>The server <Visible>{name}</Visible> needs your login again</span>
      </div>
      <p>
        The call of <code><Visible>{action.tool_name}</Visible></code> waits until you have connected your account again, and then
        goes on by itself.
      </p>
      {args.message ? <p className="mcp-text card-note"><Visible>{string(args.message)}</Visible></p> : null}
      {problem && <p className="field-problem" role="alert">{problem}</p>}
      <div className="dialog-actions">
        <Button disabled={isBusy} onClick={() => void answer({ decision: "refuse" })}>Decline</Button>
        <Button disabled={isBusy} onClick={goOn}>I have connected already</Button>
        {serverId && <LoginButton serverId={serverId} words="Connect" />}
      </div>
    </div>
  );
}
