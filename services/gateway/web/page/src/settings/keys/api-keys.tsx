/** One's own API keys, for programs and for the command line. */
import { queryOptions, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { answered, api } from "../../api/client.ts";
import { me, queryClient } from "../../api/queries.ts";
import { ConfirmButton } from "../../forms/confirm.tsx";
import { ChecksField, SelectField, TextField } from "../../forms/fields.tsx";
import { Form, useSaving } from "../../forms/form.tsx";
import { Loaded } from "../../forms/loaded.tsx";
import { ShownOnce } from "../../forms/shown-once.tsx";
import { Table } from "../../forms/table.tsx";
import { ago, ahead, moment } from "../../ui/format.ts";
import { DAY_S, type Lifetime, LIFETIMES, SCOPES, type Scope, scopeWords } from "./key-scopes.ts";

const NEAR_DAYS = 7;

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
                    <span className="cell-main">{row.name || (row.is_from_setting && "Key of the installation")}</span>
                    <span className="cell-side">
                      Begins with <code>pk_{row.id}</code>
                    </span>
                  </>
                ),
              },
              { title: "May do", cell: (row) => scopeWords(row.scopes) },
              { title: "Made", cell: (row) => ago(row.created_at, now) },
              { title: "Last used", cell: (row) => <LastUsed at={row.last_used_at} now={now} /> },
              { title: "Expires", cell: (row) => <Expiry at={row.expires_at} now={now} /> },
              {
                title: "",
                cell: (row) =>
                  row.is_from_setting ? (
                    <span className="badge" title="Made at the first start, in the file api_key of the home, or given in the environment">Given at the start</span>
                  ) : (
                    <ConfirmButton
                      label="Revoke"
                      title={`Revoke ${row.name}?`}
                      text={
                        row.last_used_at
                          ? `It was last used ${ago(row.last_used_at, now)}. Programs with it are refused from now on; this cannot be undone.`
                          : "Programs with it are refused from now on; this cannot be undone."
                      }
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

/** A key that was used today is one that a program depends on. */
function LastUsed({ at, now }: { at: string | null; now: number }) {
  if (!at) return "Never";
  return (
    <span title={moment(at)}>
      {ago(at, now)} {now - Date.parse(at) < DAY_S * 1000 && <span className="badge is-accent">In use</span>}
    </span>
  );
}

function Expiry({ at, now }: { at: string | null; now: number }) {
  if (!at) return "Never";
  const isNear = Date.parse(at) - now < NEAR_DAYS * DAY_S * 1000;
  return (
    <span title={moment(at)}>
      {ahead(at, now)} {isNear && <span className="badge is-warn">Soon</span>}
    </span>
  );
}

const REACHES = [
  ["all", "Everything that I may"],
  ["chosen", "Only what I choose"],
] as const;

function NewKey() {
  const [name, setName] = useState("");
  const [days, setDays] = useState<Lifetime>("90");
  const [made, setMade] = useState("");
  const [reach, setReach] = useState<(typeof REACHES)[number][0]>("all");
  const [scopes, setScopes] = useState<readonly Scope[]>([]);
  const role = useQuery(me).data?.role;
  const isAdmin = role === "owner" || role === "admin";
  const saving = useSaving();

  async function make(): Promise<void> {
    const chosen = reach === "chosen" ? { scopes: [...scopes] } : {};
    const body = { name: name.trim(), lifetime_s: Number(days) * DAY_S, ...chosen };
    setMade((await answered(api.POST("/api/v1/me/api-keys", { body }))).key);
    setName("");
    setReach("all");
    setScopes([]);
    await refresh();
  }

  return (
    <div className="section-part">
      {made && <ShownOnce title="Your new key" value={made} onClose={() => setMade("")} />}
      <Form
        saving={saving}
        label="Make a key"
        disabled={!name.trim() || (reach === "chosen" && scopes.length === 0)}
        onSubmit={() => void saving.save(make)}
      >
        <div className="form-row">
          <TextField label="Name" value={name} onChange={setName} problem={saving.of("/name")} placeholder="laptop" />
          <SelectField label="Lifetime" value={days} options={LIFETIMES} onChange={setDays} />
        </div>
        <SelectField label="It may do" value={reach} options={REACHES} onChange={setReach} />
        {reach === "chosen" && (
          <ChecksField
            label="What it may do"
            options={SCOPES.filter(([, , , needsAdmin]) => isAdmin || !needsAdmin).map(([scope, words, meaning]) => [scope, words, meaning])}
            chosen={scopes}
            onChange={setScopes}
            problem={saving.of("/scopes")}
            hint="Never making keys, changing the password or ending sessions."
          />
        )}
      </Form>
    </div>
  );
}
