/** One's own races, the newest first. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { Loaded } from "../forms/loaded.tsx";
import { Table } from "../forms/table.tsx";
import { ScreenHead } from "../shell/screen-head.tsx";
import { ago } from "../ui/format.ts";
import { Visible } from "../ui/visible.tsx";
import { races } from "./queries.ts";

export default function RacesScreen() {
  const now = Date.now();
  return (
    <main className="screen">
      <ScreenHead title="Races" />
      <Loaded query={useQuery(races)} what="list of races">
        {({ items }) => (
          <Table
            label="Races"
            rows={items}
            keyOf={(row) => row.id}
            empty={{ title: "No races", text: <>Switch on Race <Link href="/">where you begin a chat</Link> to give one task to several models.</> }}
            columns={[
              {
                title: "Task",
                cell: (row) => (
                  <>
                    <Link className="cell-main" href={`/races/${row.id}`}><Visible>{row.title || "Untitled"}</Visible></Link>
                    {row.check_command && <span className="cell-side">check: <code><Visible>{row.check_command}</Visible></code></span>}
                  </>
                ),
              },
              { title: "State", cell: (row) => (row.cancelled_at ? "cancelled" : row.applied_chat_id ? "one was applied" : "") },
              { title: "Started", cell: (row) => ago(row.created_at, now) },
            ]}
          />
        )}
      </Loaded>
    </main>
  );
}
