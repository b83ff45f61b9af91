/** Timed accesses of administrators to the chats of one user, which that user sees. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { answered, api } from "../api/client.ts";
import { queryClient } from "../api/queries.ts";
import { AccessTable } from "../break-glass/table.tsx";
import { accesses, BREAK_GLASS } from "../break-glass/queries.ts";
import { SelectField, TextField } from "../forms/fields.tsx";
import { Form, useSaving } from "../forms/form.tsx";
import { Loaded } from "../forms/loaded.tsx";
import { Table } from "../forms/table.tsx";
import { ago } from "../ui/format.ts";
import { Visible } from "../ui/visible.tsx";
import { users } from "./queries.ts";

const MINUTE_S = 60;

export default function BreakGlassSection() {
  const [userId, setUserId] = useState("");
  const [reason, setReason] = useState("");
  const [minutes, setMinutes] = useState("60");
  const people = useQuery(users).data?.items ?? [];
  const names = new Map(people.map((each) => [each.id, each.display_name || each.login]));
  const query = useQuery(accesses(true));
  const saving = useSaving();

  async function open(): Promise<void> {
    const body = { user_id: userId, reason: reason.trim(), duration_s: Math.round(Number(minutes) * MINUTE_S) };
    await answered(api.POST("/api/v1/break-glass", { body }));
    setReason("");
    await queryClient.invalidateQueries({ queryKey: [BREAK_GLASS] });
  }

  return (
    <>
      <p>An access lets you read the chats of one user for a limited time. The user is told at once, with your name and the reason.</p>
      <div className="section-part">
        <Form saving={saving} label="Open the access" disabled={!userId} onSubmit={() => void saving.save(open, "The access is open.")}>
          <div className="form-row">
            <SelectField
              label="User"
              value={userId}
              onChange={setUserId}
              problem={saving.of("/user_id")}
              options={[["", "Choose a user"], ...people.map((each) => [each.id, each.display_name || each.login] as const)]}
            />
            <TextField label="Minutes" type="number" value={minutes} onChange={setMinutes} problem={saving.of("/duration_s")} hint="1 to 480." />
          </div>
          <TextField label="Reason" value={reason} onChange={setReason} problem={saving.of("/reason")} hint="10 to 500 characters; the user reads it." />
        </Form>
      </div>
      <Loaded query={query} what="list of accesses">
        {(data) => (
          <>
            <AccessTable rows={data.items} nameOf={(id) => names.get(id) ?? id} />
            {data.items.filter((each) => each.is_open).map((each) => (
              <ChatsOf key={each.id} userId={each.user_id} name={names.get(each.user_id) ?? each.user_id} />
            ))}
          </>
        )}
      </Loaded>
    </>
  );
}

function ChatsOf({ userId, name }: { userId: string; name: string }) {
  const query = useQuery({
    queryKey: [BREAK_GLASS, "chats", userId],
    queryFn: ({ signal }) => answered(api.GET("/api/v1/chats", { params: { query: { owner_id: userId, limit: 50 } }, signal })),
    retry: false,
  });
  // Accesses of other administrators are listed, and do not let this one read.
  if (!query.data) return null;
  return (
    <>
      <h3 className="section-subtitle">Chats of {name}</h3>
      <Table
        label={`Chats of ${name}`}
        rows={query.data.items}
        keyOf={(row) => row.id}
        empty={{ title: "No chats", text: "This user has none." }}
        columns={[
          { title: "Chat", cell: (row) => <Link href={`/chats/${row.id}`}><Visible>{row.title || "Untitled"}</Visible></Link> },
          { title: "Changed", cell: (row) => ago(row.updated_at, Date.now()) },
        ]}
      />
    </>
  );
}
