/** MCP servers that the workspace of the chat brings along: what each runs, and whether it may. */
import "../mcp.css";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { answered, api } from "../../api/client.ts";
import { Problem } from "../../api/problem.ts";
import { me, queryClient } from "../../api/queries.ts";
import type { Chat } from "../../api/types.ts";
import { ConfirmButton } from "../../forms/confirm.tsx";
import { useSaving } from "../../forms/form.tsx";
import { Loaded } from "../../forms/loaded.tsx";
import { NoWorkspace } from "../../panel/workspace/no-workspace.tsx";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { plural } from "../../ui/format.ts";
import { Notice } from "../../ui/states.tsx";
import { countHidden, Visible } from "../../ui/visible.tsx";
import { piecesOf, stateWords, type WorkspaceServer } from "./definition.ts";
import { serversOf } from "./query.ts";

const TRUST = "/api/v1/chats/{chat_id}/servers/{name}/trust";
const REFRESH_MS = 15_000;

async function refresh(chatId: string): Promise<void> {
  await queryClient.invalidateQueries({ queryKey: serversOf(chatId).queryKey });
}

export default function WorkspaceServers({ chat }: { chat: Chat }) {
  const who = useQuery(me).data;
  const isMine = who?.id === chat.owner_id;
  const query = useQuery({ ...serversOf(chat.id), enabled: isMine, refetchInterval: REFRESH_MS });
  if (who && !isMine) return <p className="panel-note">Only the owner of the chat sees and trusts the servers of its workspace.</p>;
  if (query.error instanceof Problem && query.error.status < 500) return <NoWorkspace problem={query.error} />;
  return (
    <Loaded query={query} what="list of servers">
      {({ servers, problem }) => (
        <div className="panel-part">
          {problem && (
            <Notice kind="bad">
              <Visible>{problem}</Visible>
            </Notice>
          )}
          {servers.length === 0 && !problem && (
            <p className="panel-note">
              The workspace defines no MCP servers. A file <code>.mcp.json</code> at its root does; none is started before you trusted it.
            </p>
          )}
          {servers.map((each) => (
            <ServerCard key={each.name} chatId={chat.id} server={each} />
          ))}
        </div>
      )}
    </Loaded>
  );
}

function ServerCard({ chatId, server }: { chatId: string; server: WorkspaceServer }) {
  const { words, badge } = stateWords(server);
  const path = { chat_id: chatId, name: server.name };
  const isTrusted = ["trusted", "running", "failed"].includes(server.state ?? "");
  return (
    <section className="card" aria-label={server.name}>
      <header className="section-bar">
        <h3 className="panel-heading">
          <Visible>{server.name}</Visible>
        </h3>
        <span className={`badge ${badge}`}>{words}</span>
        {server.tool_names.length > 0 && <span className="badge">{plural(server.tool_names.length, "tool")}</span>}
      </header>
      {server.reason && (
        <p className="field-problem server-reason">
          <Visible>{server.reason}</Visible>
        </p>
      )}
      {server.command && <Pieces server={server} />}
      <div className="table-actions">
        {server.state === "untrusted" && <TrustButton chatId={chatId} server={server} />}
        {(isTrusted || server.changed_since_trust) && (
          <ConfirmButton
            label="Remove trust"
            title={`Trust ${server.name} no longer?`}
            text={isTrusted ? "It is stopped at once, and chats of this workspace lose its tools." : "The earlier definition is trusted no longer either."}
            done="It is trusted no longer."
            onConfirm={async () => {
              await answered(api.DELETE(TRUST, { params: { path } }));
              await refresh(chatId);
            }}
          />
        )}
      </div>
    </section>
  );
}

function Pieces({ server }: { server: WorkspaceServer }) {
  return (
    <dl className="facts server-pieces">
      {piecesOf(server).map(({ name, value }) => (
        <div key={name}>
          <dt>
            <Visible>{name}</Visible>
          </dt>
          <dd>
            <code>
              <Visible>{value}</Visible>
            </code>
          </dd>
        </div>
      ))}
    </dl>
  );
}

function TrustButton({ chatId, server }: { chatId: string; server: WorkspaceServer }) {
  const [shown, setShown] = useState<WorkspaceServer>();
  return (
    <>
      <Button small look="primary" onClick={() => setShown(server)}>
        Trust
      </Button>
      {shown && <TrustDialog chatId={chatId} server={shown} onClose={() => setShown(undefined)} />}
    </>
  );
}

/** Asks about the definition as it was when the question was opened: only this one becomes trusted. */
function TrustDialog({ chatId, server, onClose }: { chatId: string; server: WorkspaceServer; onClose: () => void }) {
  const saving = useSaving();
  const hidden = piecesOf(server).reduce((sum, each) => sum + countHidden(each.name + each.value), 0);

  async function trust(): Promise<void> {
    const path = { chat_id: chatId, name: server.name };
    try {
      await answered(api.PUT(TRUST, { params: { path }, body: { digest: server.digest ?? "" } }));
    } finally {
      await refresh(chatId);
    }
  }

  return (
    <Dialog title={`Trust ${server.name}?`} wide onClose={onClose}>
      <p>
        Turns of this workspace's chats start exactly this, inside the workspace and its sandbox. Another definition needs trust again; what
        the program itself does may change.
      </p>
      <Pieces server={server} />
      {hidden > 0 && (
        <Notice kind="warn">{plural(hidden, "character is", "characters are")} not shown by itself; above, each stands as its code point.</Notice>
      )}
      {saving.problem && (
        <p className="field-problem" role="alert">
          {saving.problem}
        </p>
      )}
      <div className="dialog-actions">
        <Button onClick={onClose}>Cancel</Button>
        <Button
          look="primary"
          disabled={saving.isBusy}
          onClick={() => void saving.save(trust, "It is trusted, and started when a turn needs it.").then((isDone) => isDone && onClose())}
        >
          Trust this definition
        </Button>
      </div>
    </Dialog>
  );
}
