/** Tokens of internal callers. */
import { queryOptions, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { answered, api } from "../api/client.ts";
import { queryClient } from "../api/queries.ts";
import type { components } from "../api/schema.d.ts";
import { ConfirmButton } from "../forms/confirm.tsx";
import { ChecksField, SelectField, TextField } from "../forms/fields.tsx";
import { Form, useSaving } from "../forms/form.tsx";
import { Loaded } from "../forms/loaded.tsx";
import { ShownOnce } from "../forms/shown-once.tsx";
import { Table } from "../forms/table.tsx";
import { DAY_S, type Lifetime, LIFETIMES, SCOPES, type Scope, scopeWords } from "../settings/keys/key-scopes.ts";
import { ahead, moment } from "../ui/format.ts";

type Token = components["schemas"]["ServiceToken"];

function stateOf(token: Token): string {
  if (token.revoked_at) return "Revoked";
  if (token.expires_at && Date.parse(token.expires_at) <= Date.now()) return "Expired";
  return token.signing_key_retired ? "Refused: the key that signed it is retired" : "Valid";
}

const tokens = queryOptions({
  queryKey: ["admin", "service-tokens"],
  queryFn: ({ signal }) => answered(api.GET("/api/v1/service-tokens", { signal })),
});

async function refresh(): Promise<void> {
  await queryClient.invalidateQueries({ queryKey: tokens.queryKey });
}

export default function TokensSection() {
  const [name, setName] = useState("");
  const [scopes, setScopes] = useState<readonly Scope[]>(["chat:read", "chat:write"]);
  const [days, setDays] = useState<Lifetime>("90");
  const [made, setMade] = useState("");
  const saving = useSaving();

  async function issue(): Promise<void> {
    const body = { name: name.trim(), scopes: [...scopes], lifetime_s: Number(days) * DAY_S };
    setMade((await answered(api.POST("/api/v1/service-tokens", { body }))).token);
    setName("");
    await refresh();
  }

  return (
    <>
      <div className="section-part">
        {made && <ShownOnce title="The new token" value={made} onClose={() => setMade("")} />}
        <Form
          saving={saving}
          label="Issue a token"
          disabled={!name.trim() || scopes.length === 0}
          onSubmit={() => void saving.save(issue)}
        >
          <div className="form-row">
            <TextField label="Name" value={name} onChange={setName} problem={saving.of("/name")} />
            <SelectField label="Lifetime" value={days} options={LIFETIMES} onChange={setDays} problem={saving.of("/lifetime_s")} />
          </div>
          <ChecksField
            label="What programs with it may do"
            options={SCOPES.map(([scope, words, meaning]) => [scope, words, meaning])}
            chosen={scopes}
            onChange={setScopes}
            problem={saving.of("/scopes")}
          />
        </Form>
      </div>
      <Loaded query={useQuery(tokens)} what="list of tokens">
        {(data) => (
          <Table
            label="Service tokens"
            rows={data.items}
            keyOf={(row) => row.id}
            empty={{ title: "No tokens", text: "Programs that call the services over gRPC need one." }}
            columns={[
              {
                title: "Name",
                cell: (row) => (
                  <>
                    <span className="cell-main">{row.name}</span>
                    <span className="cell-side">{scopeWords(row.scopes)}</span>
                  </>
                ),
              },
              { title: "Expires", cell: (row) => (row.expires_at ? <span title={moment(row.expires_at)}>{ahead(row.expires_at, Date.now())}</span> : "Never") },
              {
                title: "State",
                cell: (row) => stateOf(row),
              },
              {
                title: "",
                cell: (row) =>
                  row.revoked_at ? null : (
                    <ConfirmButton
                      label="Revoke"
                      title={`Revoke ${row.name}?`}
                      text="Callers with it are refused at once."
                      onConfirm={async () => {
                        await answered(
                          api.DELETE("/api/v1/service-tokens/{token_id}", { params: { path: { token_id: row.id } } }),
                        );
                        await refresh();
                      }}
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
