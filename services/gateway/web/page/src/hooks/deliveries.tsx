/** The newest deliveries to a hook: how each ended, and why it failed. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { Loaded } from "../forms/loaded.tsx";
import { Table } from "../forms/table.tsx";
import { Button } from "../ui/button.tsx";
import { ago, duration, plural } from "../ui/format.ts";
import { Visible } from "../ui/visible.tsx";
import { type Delivery, deliveries } from "./queries.ts";

const LOOKS: Record<string, string> = { allow: "is-accent", deny: "is-warn", ask: "is-warn", failed: "is-bad" };

export function Outcome({ delivery }: { delivery: Delivery }) {
  const outcome = delivery.outcome ?? "unknown";
  return <span className={`badge ${LOOKS[outcome] ?? ""}`}>{outcome}</span>;
}

export function reasonOf(delivery: Delivery): string {
  const status = delivery.http_status ? `HTTP ${delivery.http_status}` : "no answer";
  return delivery.problem ?? (delivery.outcome === "failed" ? status : "");
}

export function Deliveries({ hookId }: { hookId: string }) {
  const query = useQuery(deliveries(hookId));
  const [onlyFailed, setOnlyFailed] = useState(false);
  return (
    <Loaded query={query} what="list of deliveries">
      {({ items }) => {
        const failed = items.filter((each) => each.outcome === "failed");
        const now = Date.now();
        return (
          <>
            <div className="section-bar">
              <p className="field-hint">
                {plural(items.length, "delivery", "deliveries")}, {failed.length} failed. The last 200 are kept.
              </p>
              <Button small className="toggle" aria-pressed={onlyFailed} onClick={() => setOnlyFailed(!onlyFailed)}>
                Only failed
              </Button>
              <Button small disabled={query.isFetching} onClick={() => void query.refetch()}>
                Read again
              </Button>
            </div>
            <Table
              label="Deliveries"
              rows={onlyFailed ? failed : items}
              keyOf={(row) => `${row.dispatch_id} ${row.created_at}`}
              empty={{
                title: onlyFailed ? "None failed" : "No deliveries",
                text: "A delivery is listed when an event of a chat was sent. Test sends one with invented data.",
              }}
              columns={[
                { title: "When", cell: (row) => <time title={row.created_at ?? ""}>{ago(row.created_at, now)}</time> },
                {
                  title: "Event",
                  cell: (row) => (
                    <>
                      <span className="cell-main">{row.event}</span>
                      <span className="cell-side">
                        {row.tool_name && <Visible>{`${row.tool_name} `}</Visible>}
                        {row.chat_id ? <Link href={`/chats/${row.chat_id}`}>chat</Link> : "test"}
                      </span>
                    </>
                  ),
                },
                {
                  title: "Outcome",
                  cell: (row) => (
                    <>
                      <Outcome delivery={row} />
                      <span className="cell-side"><Visible>{reasonOf(row)}</Visible></span>
                      {row.notice && <span className="cell-side">Notice: <Visible>{row.notice}</Visible></span>}
                    </>
                  ),
                },
                { title: "Attempts", isNumber: true, cell: (row) => row.attempts },
                { title: "Took", isNumber: true, cell: (row) => duration(row.duration_ms) },
              ]}
            />
          </>
        );
      }}
    </Loaded>
  );
}
