/** One's own API keys, for programs and for the command line. */
import { queryOptions, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { answered, api } from "../api/client.ts";
import { queryClient } from "../api/queries.ts";
import { ConfirmButton } from "../forms/confirm.tsx";
import { SelectField, TextField } from "../forms/fields.tsx";
import { Form, useSaving } from "../forms/form.tsx";
import { Loaded } from "../forms/loaded.tsx";
import { ShownOnce } from "../forms/shown-once.tsx";
import { Table } from "../forms/table.tsx";
import { ago } from "../ui/format.ts";

const DAY_S = 86_400;
const LIFETIMES = [
  ["30", "30 days"],
  ["90", "90 days"],
  ["365", "A year"],
] as const;

const keys = queryOptions({
  queryKey: ["me", "api-keys"],
  queryFn: ({ signal }) => answered(api.GET("/api/v1/me/api-keys", { signal })),
});

async function refresh(): Promise<void> {
  await queryClient.invalidateQueries({ queryKey: keys.queryKey });
}

async function revoke(keyId: string): Promise<void> {
  const params = { path: { api_key_id: keyId } };
  await answered(api.DELETE("/api/v1/me/api-keys/{api_key_id}", { params }));
  await refresh();
}

export default function ApiKeysSection() {
  const now = Date.now();
  return (
    <>
      <NewKey />
      <Loaded query={useQuery(keys)} what="list of keys">
        {(data) => (
          <Table
            label="API keys"
            rows={data.items.filter((row) => !row.revoked_at)}
            keyOf={(row) => row.id}
            empty={{ title: "No API keys", text: "Make one above, or with parley login." }}
            columns={[
              {
                title: "Name",
                cell: (row) => (
                  <>
                    <span className="cell-main">{row.name}</span>
                    <span className="cell-side">{row.scopes.join(", ") || "everything you may do"}</span>
                  </>
                ),
              },
              { title: "Last used", cell: (row) => ago(row.last_used_at, now) || "never" },
              { title: "Expires", cell: (row) => row.expires_at?.slice(0, 10) ?? "never" },
              {
                title: "",
                cell: (row) =>
                  row.is_from_setting ? (
                    <span className="badge">From the environment</span>
                  ) : (
                    <ConfirmButton
                      label="Revoke"
                      title={`Revoke ${row.name}?`}
                      text="Programs with this key are refused from now on."
                      done="The key is revoked."
                      onConfirm={() => revoke(row.id)}
                    />
                  ),
              },
            ]}
          />
        )}
      </Loaded>
    </>
  );
}

function NewKey() {
  const [name, setName] = useState("");
  const [days, setDays] = useState<(typeof LIFETIMES)[number][0]>("90");
  const [made, setMade] = useState("");
  const saving = useSaving();

  async function make(): Promise<void> {
    const body = { name: name.trim(), lifetime_s: Number(days) * DAY_S };
    setMade((await answered(api.POST("/api/v1/me/api-keys", { body }))).key);
    setName("");
    await refresh();
  }

  return (
    <div className="section-part">
      {made && <ShownOnce title="Your new key" value={made} onClose={() => setMade("")} />}
      <Form
        saving={saving}
        label="Make a key"
        disabled={!name.trim()}
        onSubmit={() => void saving.save(make)}
      >
        <div className="form-row">
          <TextField label="Name" value={name} onChange={setName} problem={saving.of("/name")} placeholder="laptop" />
          <SelectField label="Lifetime" value={days} options={LIFETIMES} onChange={setDays} />
        </div>
      </Form>
    </div>
  );
}
