/** Tokens of internal callers. */
import { queryOptions, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { answered, api } from "../api/client.ts";
import { queryClient } from "../api/queries.ts";
import { ConfirmButton } from "../forms/confirm.tsx";
import { TextField } from "../forms/fields.tsx";
import { Form, useSaving } from "../forms/form.tsx";
import { Loaded } from "../forms/loaded.tsx";
import { ShownOnce } from "../forms/shown-once.tsx";
import { Table } from "../forms/table.tsx";

const tokens = queryOptions({
  queryKey: ["admin", "service-tokens"],
  queryFn: ({ signal }) => answered(api.GET("/api/v1/service-tokens", { signal })),
});

async function refresh(): Promise<void> {
  await queryClient.invalidateQueries({ queryKey: tokens.queryKey });
}

export default function TokensSection() {
  const [name, setName] = useState("");
  const [scopes, setScopes] = useState("chat:read chat:write");
  const [made, setMade] = useState("");
  const saving = useSaving();

  async function issue(): Promise<void> {
    const body = { name: name.trim(), scopes: scopes.split(/[\s,]+/).filter(Boolean) };
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
          disabled={!name.trim()}
          onSubmit={() => void saving.save(issue)}
        >
          <div className="form-row">
            <TextField label="Name" value={name} onChange={setName} problem={saving.of("/name")} />
            <TextField label="Scopes" value={scopes} onChange={setScopes} problem={saving.of("/scopes")} />
          </div>
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
                    <span className="cell-side">{row.scopes.join(", ")}</span>
                  </>
                ),
              },
              { title: "Expires", cell: (row) => row.expires_at?.slice(0, 10) ?? "never" },
              {
                title: "State",
                cell: (row) => (row.revoked_at ? "revoked" : row.signing_key_retired ? "key retired" : "valid"),
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
