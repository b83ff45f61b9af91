/** The other chats that work in a workspace: what one changes there the others see. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { answered, api } from "../../api/client.ts";
import type { Chat } from "../../api/types.ts";
import { Visible } from "../../ui/visible.tsx";

const CHATS_MAX = 20;

export function WorkspaceChats({ chat, workspaceId }: { chat: Chat; workspaceId: string }) {
  const { data } = useQuery({
    queryKey: ["workspace", workspaceId, "chats"],
    queryFn: ({ signal }) =>
      answered(api.GET("/api/v1/chats", { params: { query: { workspace_id: workspaceId, limit: CHATS_MAX } }, signal })),
  });
  const others = (data?.items ?? []).filter((each) => each.id !== chat.id);
  if (others.length === 0) return null;
  return (
    <section aria-label="Other chats of the workspace">
      <h3 className="panel-heading">Other chats in it</h3>
      <ul className="workspace-chats">
        {others.map((each) => (
          <li key={each.id}>
            <Link href={`/chats/${each.id}`}><Visible>{each.title || "Untitled"}</Visible></Link>
          </li>
        ))}
      </ul>
      {data?.next_cursor && <p className="panel-note">There are more.</p>}
    </section>
  );
}
