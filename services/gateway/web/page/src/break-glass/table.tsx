import { answered, api } from "../api/client.ts";
import { queryClient } from "../api/queries.ts";
import type { components } from "../api/schema.d.ts";
import { Table } from "../forms/table.tsx";
import { Button } from "../ui/button.tsx";
import { complain } from "../ui/toasts.tsx";
import { Visible } from "../ui/visible.tsx";
import { BREAK_GLASS } from "./queries.ts";

type Access = components["schemas"]["BreakGlassAccess"];

interface Props {
  rows: readonly Access[];
  nameOf: (userId: string) => string;
  /** Whether these are accesses to one's own chats, which others end. */
  isSubject?: boolean;
}

export function AccessTable({ rows, nameOf, isSubject }: Props) {
  async function end(id: string): Promise<void> {
    try {
      await answered(api.DELETE("/api/v1/break-glass/{access_id}", { params: { path: { access_id: id } } }));
    } catch (error) {
      complain(error);
    }
    await queryClient.invalidateQueries({ queryKey: [BREAK_GLASS] });
  }
  return (
    <Table
      label="Accesses to chats"
      rows={rows}
      keyOf={(row) => row.id}
      empty={{ title: "No accesses", text: "No administrator has opened an access to chats." }}
      columns={[
        { title: "Administrator", cell: (row) => nameOf(row.administrator_id) },
        ...(isSubject ? [] : [{ title: "User", cell: (row: Access) => nameOf(row.user_id) }]),
        { title: "Reason", cell: (row) => <Visible>{row.reason}</Visible> },
        { title: "Opened", cell: (row) => when(row.opened_at) },
        { title: "Until", cell: (row) => when(row.ended_at ?? row.expires_at) },
        {
          title: "",
          cell: (row) =>
            !row.is_open ? "over" : isSubject ? <span className="badge is-warn">open</span> : <Button small onClick={() => void end(row.id)}>End</Button>,
        },
      ]}
    />
  );
}

function when(at: string | null): string {
  return at ? new Date(at).toLocaleString() : "";
}
