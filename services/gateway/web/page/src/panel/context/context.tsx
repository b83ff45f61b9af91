/** What the next prompt of a chat consists of, and the instruction files that are pinned for it. */
import { queryOptions, useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { answered, api } from "../../api/client.ts";
import { queryClient } from "../../api/queries.ts";
import type { components } from "../../api/schema.d.ts";
import { Loaded } from "../../forms/loaded.tsx";
import { Button } from "../../ui/button.tsx";
import { bytes, count } from "../../ui/format.ts";
import { Notice } from "../../ui/states.tsx";
import { complain, say } from "../../ui/toasts.tsx";
import { Visible } from "../../ui/visible.tsx";
import { useIsReader } from "../../sharing/owner.ts";
import { OwnersOnly } from "../../sharing/owners-only.tsx";
import { sharesOf, titleOf } from "./context-parts.ts";
import type { TabProps } from "../panel.tsx";

type ChatContext = components["schemas"]["ChatContext"];

export default function Context({ chat }: TabProps) {
  if (useIsReader(chat)) return <OwnersOnly chat={chat} what="what its next prompt consists of" />;
  return <OwnContext chat={chat} />;
}

function OwnContext({ chat }: TabProps) {
  const path = { chat_id: chat.id };
  const key = ["chat", chat.id, "context"];
  const context = useQuery(
    queryOptions({
      queryKey: key,
      queryFn: ({ signal }) => answered(api.GET("/api/v1/chats/{chat_id}/context", { params: { path }, signal })),
      staleTime: 0,
    }),
  );
  const [isReading, setReading] = useState(false);
  const { refetch } = context;
  // The history grows with every turn.
  useEffect(() => {
    if (chat.status !== "running") void refetch();
  }, [chat.status, chat.updated_at, refetch]);

  async function refresh(): Promise<void> {
    setReading(true);
    try {
      const read = await answered(api.POST("/api/v1/chats/{chat_id}/context/refresh", { params: { path }, body: {} }));
      queryClient.setQueryData(key, read);
      say("The instruction files were read again.");
    } catch (error) {
      complain(error);
    }
    setReading(false);
  }

  return (
    <Loaded query={context} what="context">
      {(data) => (
        <>
          <Breakdown context={data} />
          <section className="panel-part" aria-label="Pinned instructions">
            <div className="section-bar">
              <h3 className="panel-heading">Pinned instructions</h3>
              <Button small disabled={isReading} onClick={() => void refresh()}>Read them again</Button>
            </div>
            {data.instructions_drifted && (
              <Notice kind="warn" title="The files have changed">
                The model still reads what is pinned. Read them again to use what is in the workspace now.
              </Notice>
            )}
            <Files context={data} />
          </section>
        </>
      )}
    </Loaded>
  );
}

function Breakdown({ context }: { context: ChatContext }) {
  const limit = context.context_limit_tokens;
  const used = context.parts.reduce((sum, part) => sum + part.tokens, 0);
  const shares = sharesOf(context.parts, limit);
  const words = limit ? `${count(used)} of ${count(limit)} tokens` : `${count(used)} tokens`;
  return (
    <section className="panel-part" aria-label="Parts of the next prompt">
      <h3 className="panel-heading">The next prompt: about {words}</h3>
      <svg className="context-bar" viewBox="0 0 100 4" preserveAspectRatio="none" role="img" aria-label={words}>
        {shares.map((share) => (
          <rect key={share.kind} className={`context-${share.kind}`} x={share.start} width={share.width} height="4" />
        ))}
      </svg>
      <table className="figures">
        <tbody>
          {shares.map((share) => (
            <tr key={share.kind}>
              <th scope="row">
                <svg className="context-key" viewBox="0 0 1 1" aria-hidden="true">
                  <rect className={`context-${share.kind}`} width="1" height="1" />
                </svg>{" "}
                {titleOf(share.kind)}
              </th>
              <td>{count(share.tokens)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function Files({ context }: { context: ChatContext }) {
  if (context.instruction_files.length === 0) {
    const words = context.instructions_version === 0 ? "None were read yet; the first turn with a workspace does." : "The workspace has none.";
    return <p className="panel-note">{words} AGENTS.md, CLAUDE.md and .cursorrules at its root say how to work in it.</p>;
  }
  return (
    <ul className="entries">
      {context.instruction_files.map((file) => (
        <li key={file.path} className="entry">
          <span className="entry-name"><Visible>{file.path}</Visible></span>
          <span className="entry-side">
            {bytes(file.size_bytes)}, {count(file.tokens)} tokens{file.truncated && " (shortened)"}
          </span>
        </li>
      ))}
    </ul>
  );
}
