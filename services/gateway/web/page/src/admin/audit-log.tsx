/** Who did what: entries by filter, whether the log is intact, and its export. */
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useDeferredValue, useState } from "react";
import { answered, api } from "../api/client.ts";
import { wordsOf } from "../api/problem.ts";
import type { components } from "../api/schema.d.ts";
import { SelectField, TextField } from "../forms/fields.tsx";
import { Loaded } from "../forms/loaded.tsx";
import { Table } from "../forms/table.tsx";
import { Button } from "../ui/button.tsx";
import { moment, money, plural } from "../ui/format.ts";
import { Notice } from "../ui/states.tsx";
import { Visible } from "../ui/visible.tsx";
import { users } from "./queries.ts";

type Entry = components["schemas"]["AuditEntry"];

export default function AuditLogSection() {
  const [action, setAction] = useState("");
  const [userId, setUserId] = useState("");
  const [start, setStart] = useState("");
  const people = useQuery(users).data?.items ?? [];
  const names = new Map(people.map((each) => [each.id, each.display_name || each.login]));
  const words = useDeferredValue(action.trim());
  const filter = {
    ...(words ? { action: words } : {}),
    ...(userId ? { user_id: userId } : {}),
    ...(start ? { start: new Date(start).toISOString() } : {}),
  };
  const query = useInfiniteQuery({
    queryKey: ["admin", "audit-log", filter],
    queryFn: ({ pageParam, signal }) =>
      answered(api.GET("/api/v1/audit-log", { params: { query: { limit: 50, ...filter, ...(pageParam ? { cursor: pageParam } : {}) } }, signal })),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_cursor || undefined,
    placeholderData: (was) => was,
  });
  return (
    <>
      <Verification />
      <div className="form-row section-part">
        <TextField label="Action" value={action} onChange={setAction} placeholder="user.created" hint="Or its first word, such as user." />
        <SelectField
          label="Person"
          value={userId}
          onChange={setUserId}
          options={[["", "Everyone"], ...people.map((each) => [each.id, each.display_name || each.login] as const)]}
        />
        <TextField label="Not before" value={start} onChange={(day) => setStart(isDay(day) || !day ? day : start)} placeholder="2026-11-01" />
      </div>
      {query.error && query.data && <p className="field-problem" role="alert">{wordsOf(query.error)}</p>}
      <Loaded query={query} what="audit log">
        {(data) => (
          <Table
            label="Audit log"
            rows={data.pages.flatMap((page) => page.items)}
            keyOf={(row) => row.id}
            empty={{ title: "No entries", text: "Nothing was recorded that fits the filter." }}
            columns={columns((id) => (id ? (names.get(id) ?? id) : ""))}
          />
        )}
      </Loaded>
      {query.hasNextPage && (
        <Button disabled={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>Older entries</Button>
      )}
    </>
  );
}

function isDay(text: string): boolean {
  return !Number.isNaN(Date.parse(text)) || /^[\d-]*$/.test(text);
}

/** A detail as people read it: amounts as money, times as dates, words apart, and the rest as it is stored. */
export function detailWords(name: string, value: unknown): string {
  if (name.endsWith("_micros") && typeof value === "number") return money(value);
  if (name.endsWith("_at") && typeof value === "string" && !Number.isNaN(Date.parse(value))) return moment(value);
  if (String(value) === "true") return "yes";
  if (String(value) === "false") return "no";
  if (typeof value !== "string") return JSON.stringify(value);
  return /^[a-z]+(_[a-z]+)+$/.test(value) ? value.replaceAll("_", " ") : value;
}

function columns(nameOf: (id: string | null) => string) {
  return [
    { title: "When", cell: (row: Entry) => (row.at ? new Date(row.at).toLocaleString() : "") },
    {
      title: "Action",
      cell: (row: Entry) => (
        <>
          <code>{row.action}</code> {row.outcome === "refused" && <span className="badge is-warn">refused</span>}
        </>
      ),
    },
    { title: "By", cell: (row: Entry) => nameOf(row.actor_id) || row.service },
    { title: "Concerns", cell: (row: Entry) => nameOf(row.subject_id) || row.object_id || "" },
    { title: "From", cell: (row: Entry) => row.address ?? "" },
    {
      title: "Details",
      cell: (row: Entry) => {
        const details = Object.entries(row.details ?? {});
        return (
          details.length > 0 && (
            <dl className="pairs">
              {details.map(([name, value]) => (
                <div key={name}>
                  <dt>{name.replace(/_micros$/, "").replaceAll("_", " ")}</dt> <dd><Visible>{detailWords(name, value)}</Visible></dd>
                </div>
              ))}
            </dl>
          )
        );
      },
    },
  ];
}

function Verification() {
  const query = useQuery({
    queryKey: ["admin", "audit-log-verification"],
    enabled: false,
    queryFn: ({ signal }) => answered(api.GET("/api/v1/audit-log/verification", { signal })),
  });
  const found = query.data;
  return (
    <div className="section-part">
      <div className="form-actions">
        <Button icon="shield" disabled={query.isFetching} onClick={() => void query.refetch()}>
          {query.isFetching ? "Verifying…" : "Verify the log"}
        </Button>
        <a className="button is-plain" href="/api/v1/audit-log/export" download="audit-log.jsonl">Export all as JSON lines</a>
      </div>
      {query.error && <p className="field-problem" role="alert">{wordsOf(query.error)}</p>}
      {found && (
        <Notice kind={found.is_intact ? "plain" : "bad"} icon={found.is_intact ? "check" : "warn"} alert={!found.is_intact} title={found.is_intact ? "The log is intact" : "The log was changed"}>
          {plural(found.entries, "entry", "entries")}, the last is number {found.last_seq}.
          {found.unsealed > 0 && ` ${plural(found.unsealed, "newer one is", "newer ones are")} not sealed yet.`}
          {found.problems.map((each) => (
            <p key={`${each.kind} ${each.seq}`}>Line {each.seq}: {each.description}</p>
          ))}
        </Notice>
      )}
    </div>
  );
}
