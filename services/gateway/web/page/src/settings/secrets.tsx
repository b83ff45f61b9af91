/** Secrets that workspaces may use without seeing them, and their uses. */
import { queryOptions, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { answered, api } from "../api/client.ts";
import { queryClient } from "../api/queries.ts";
import type { components } from "../api/schema.d.ts";
import { ConfirmButton } from "../forms/confirm.tsx";
import { SelectField, TextField } from "../forms/fields.tsx";
import { Form, useSaving } from "../forms/form.tsx";
import { Loaded } from "../forms/loaded.tsx";
import { Table } from "../forms/table.tsx";
import { ago } from "../ui/format.ts";

type Delivery = components["schemas"]["SecretDelivery"];

const DELIVERIES: readonly (readonly [Delivery, string])[] = [
  ["proxy", "Header of requests to its hosts"],
  ["git", "Git over HTTPS to its hosts"],
  ["environment", "Environment variable (programs see it)"],
];

const secrets = queryOptions({
  queryKey: ["secrets"],
  queryFn: ({ signal }) => answered(api.GET("/api/v1/secrets", { signal })),
});
const uses = queryOptions({
  queryKey: ["secrets", "uses"],
  queryFn: ({ signal }) => answered(api.GET("/api/v1/secrets/uses", { signal })),
});

async function forget(secretId: string): Promise<void> {
  await answered(api.DELETE("/api/v1/secrets/{secret_id}", { params: { path: { secret_id: secretId } } }));
  await queryClient.invalidateQueries({ queryKey: secrets.queryKey });
}

export default function SecretsSection() {
  const now = Date.now();
  return (
    <>
      <NewSecret />
      <div className="section-part">
        <Loaded query={useQuery(secrets)} what="list of secrets">
          {(data) => (
            <Table
              label="Secrets"
              rows={data.items}
              keyOf={(row) => row.id}
              empty={{
                title: "No secrets",
                text: "Store one above, then grant it to a workspace: its programs use it and never see it.",
              }}
              columns={[
                {
                  title: "Name",
                  cell: (row) => (
                    <>
                      <span className="cell-main">{row.name}</span>
                      <span className="cell-side">{row.description}</span>
                    </>
                  ),
                },
                { title: "As", cell: (row) => row.delivery },
                { title: "Hosts", cell: (row) => row.hosts.join(", ") },
                { title: "Last used", cell: (row) => ago(row.last_used_at, now) || "never" },
                {
                  title: "",
                  cell: (row) => (
                    <ConfirmButton
                      label="Forget"
                      title={`Forget ${row.name}?`}
                      text="Workspaces that were granted it cannot use it any more."
                      done="The secret is forgotten."
                      onConfirm={() => forget(row.id)}
                    />
                  ),
                },
              ]}
            />
          )}
        </Loaded>
      </div>
      <h3 className="section-part-title">Uses</h3>
      <Loaded query={useQuery(uses)} what="list of uses">
        {(data) => (
          <Table
            label="Uses of secrets"
            rows={data.items}
            keyOf={(row) => row.id}
            empty={{ title: "No uses", text: "No workspace used a secret of yours." }}
            columns={[
              { title: "Secret", cell: (row) => row.secret_name },
              { title: "Host", cell: (row) => row.host ?? "" },
              { title: "For", cell: (row) => row.purpose },
              { title: "Outcome", cell: (row) => row.outcome ?? "" },
              { title: "When", cell: (row) => ago(row.used_at, now) },
            ]}
          />
        )}
      </Loaded>
    </>
  );
}

function NewSecret() {
  const [name, setName] = useState("");
  const [value, setValue] = useState("");
  const [hosts, setHosts] = useState("");
  const [delivery, setDelivery] = useState<Delivery>("proxy");
  const saving = useSaving();

  async function store(): Promise<void> {
    const body = {
      name: name.trim(),
      value,
      delivery,
      hosts: hosts.split(/[\s,]+/).filter(Boolean),
    };
    await answered(api.POST("/api/v1/secrets", { body }));
    setName("");
    setValue("");
    setHosts("");
    await queryClient.invalidateQueries({ queryKey: secrets.queryKey });
  }

  return (
    <div className="section-part">
      <Form
        saving={saving}
        label="Store the secret"
        disabled={!name.trim() || !value}
        onSubmit={() => void saving.save(store, "The secret is stored.")}
      >
        <div className="form-row">
          <TextField label="Name" value={name} onChange={setName} problem={saving.of("/name")} />
          <TextField label="Value" type="password" value={value} onChange={setValue} problem={saving.of("/value")} />
        </div>
        <SelectField label="Delivered as" value={delivery} options={DELIVERIES} onChange={setDelivery} />
        <TextField
          label="Hosts"
          value={hosts}
          onChange={setHosts}
          problem={saving.of("/hosts")}
          placeholder="api.example.org"
          hint="Only requests to these hosts carry it. Separate several by commas."
        />
      </Form>
    </div>
  );
}
