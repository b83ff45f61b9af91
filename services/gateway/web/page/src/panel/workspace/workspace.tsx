/** The workspace of the chat: its state, lifetime, limits and the log of its preparation. */
import { queryOptions, useQuery } from "@tanstack/react-query";
import { answered, api } from "../../api/client.ts";
import { queryClient } from "../../api/queries.ts";
import type { components } from "../../api/schema.d.ts";
import { Loaded } from "../../forms/loaded.tsx";
import { bytes } from "../../ui/format.ts";
import { Notice } from "../../ui/states.tsx";
import { lifetimeOf, stoppedWords, stopsSoonWords } from "../../workspaces/lifetime-words.ts";
import { WorkspaceTable } from "../../workspaces/table.tsx";
import { useIsReader } from "../../sharing/owner.ts";
import { OwnersOnly } from "../../sharing/owners-only.tsx";
import type { TabProps } from "../panel.tsx";
import { SetupLog } from "./setup-log.tsx";
import { SwitchWorkspace } from "./switch-workspace.tsx";
import { WorkspaceChats } from "./workspace-chats.tsx";

type Workspace = components["schemas"]["Workspace"];

export default function WorkspaceTab({ chat }: TabProps) {
  if (useIsReader(chat)) return <OwnersOnly chat={chat} what="its workspace; Files, Changes and Processes have what is in it" />;
  return <OwnWorkspace chat={chat} />;
}

function OwnWorkspace({ chat }: TabProps) {
  const id = chat.workspace_id;
  const workspace = useQuery(
    queryOptions({
      queryKey: ["workspace", id],
      queryFn: ({ signal }) =>
        answered(
          api.GET("/api/v1/workspaces/{workspace_id}", { params: { path: { workspace_id: id ?? "" } }, signal }),
        ),
      enabled: Boolean(id),
      refetchInterval: 15_000,
    }),
  );
  if (!id) {
    return (
      <>
        <p className="panel-note">No workspace was chosen. The agent works in a directory of this chat's own.</p>
        <SwitchWorkspace chat={chat} name={undefined} />
      </>
    );
  }
  return (
    <>
      <Loaded query={workspace} what="workspace">
        {(data) => (
          <div className="panel-part">
            <WorkspaceTable
              rows={[data]}
              empty=""
              onChanged={() => queryClient.invalidateQueries({ queryKey: ["workspace", id] })}
            />
            {data.failure && <p className="field-problem">{data.failure.message}</p>}
            <State workspace={data} />
            <dl className="facts">
              <dt>Lifetime</dt>
              <dd>{lifetimeOf(data)}</dd>
              <dt>Sandbox</dt>
              <dd>{data.sandbox_level ?? "unknown"}</dd>
              <dt>Network</dt>
              <dd>{[data.network.access, ...data.network.allowed_hosts].join(", ")}</dd>
              <dt>Memory</dt>
              <dd>
                {data.usage ? bytes(data.usage.memory_bytes) : "unknown"} of {bytes(data.limits.memory_bytes)}
              </dd>
              <dt>Processes</dt>
              <dd>
                {data.usage?.pids ?? "unknown"} of {data.limits.pids}
              </dd>
              <dt>Directory</dt>
              <dd>{data.root_path ?? ""}</dd>
            </dl>
            <WorkspaceChats chat={chat} workspaceId={data.id} />
            {/* Each start has a log of its own. */}
            <SetupLog key={`${data.id} ${data.epoch}`} workspace={data} />
          </div>
        )}
      </Loaded>
      <SwitchWorkspace chat={chat} name={workspace.data?.name} />
    </>
  );
}

/** Why it does not run, or that it stops soon. */
function State({ workspace }: { workspace: Workspace }) {
  const soon = stopsSoonWords(workspace, Date.now());
  if (soon) return <Notice kind="warn" icon="clock" alert>{soon}</Notice>;
  const stopped = stoppedWords(workspace);
  return stopped ? <p className="panel-note">{stopped}</p> : null;
}
