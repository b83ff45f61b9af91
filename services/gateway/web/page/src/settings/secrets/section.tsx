/** Secrets that workspaces may use without seeing them, and their uses. */
import { queryOptions, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { answered, api } from "../../api/client.ts";
import { me, queryClient } from "../../api/queries.ts";
import { ConfirmButton } from "../../forms/confirm.tsx";
import { CheckField, SelectField, TextField } from "../../forms/fields.tsx";
import { Form, useSaving } from "../../forms/form.tsx";
import { Loaded } from "../../forms/loaded.tsx";
import { Table } from "../../forms/table.tsx";
import { ago } from "../../ui/format.ts";
import { SecretGrants } from "./grants.tsx";
import { DELIVERIES, type Delivery, deliveryWords, outcomeWords } from "./words.ts";

const secrets = queryOptions({
  queryKey: ["secrets"],
  queryFn: ({ signal }) => answered(api.GET("/api/v1/secrets", { params: { query: { limit: 200 } }, signal })),
});
const uses = queryOptions({
  queryKey: ["secrets", "uses"],
  queryFn: ({ signal }) => answered(api.GET("/api/v1/secrets/uses", { params: { query: { limit: 200 } }, signal })),
});

async function forget(secretId: string): Promise<void> {
  await answered(api.DELETE("/api/v1/secrets/{secret_id}", { params: { path: { secret_id: secretId } } }));
  await queryClient.invalidateQueries({ queryKey: secrets.queryKey });
}

export default function SecretsSection() {
  const now = Date.now();
  const stored = useQuery(secrets);
  const used = useQuery(uses);
  return (
    <>
      <NewSecret />
      <div className="section-part">
        <Loaded query={stored} what="list of secrets">
          {(data) => (
            <Table
              label="Secrets"
              rows={data.items}
              keyOf={(row) => row.id}
              empty={{
                title: "No secrets",
                text: "Store one above, then choose below which workspace may use it.",
              }}
              columns={[
                {
                  title: "Name",
                  cell: (row) => (
                    <>
                      <span className="cell-main">{row.name}</span>{" "}
                      {!row.owner_id && <span className="badge">Of the installation</span>}
                      <span className="cell-side">{row.description}</span>
                    </>
                  ),
                },
                { title: "Delivered as", cell: (row) => deliveryWords(row.delivery) },
                { title: "Hosts", cell: (row) => row.hosts.join(", ") },
                { title: "Last used", cell: (row) => ago(row.last_used_at, now) || "Never" },
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
      <div className="section-part">
        <h3 className="section-part-title">Which workspace may use which</h3>
        <SecretGrants secrets={stored.data?.items ?? []} uses={used.data?.items ?? []} />
      </div>
      <h3 className="section-part-title">Latest uses</h3>
      <Loaded query={used} what="list of uses">
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
              { title: "Outcome", cell: (row) => outcomeWords(row.outcome) },
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
  const [description, setDescription] = useState("");
  const [username, setUsername] = useState("");
  const [header, setHeader] = useState("");
  const [isShared, setShared] = useState(false);
  const role = useQuery(me).data?.role;
  const isAdmin = role === "owner" || role === "admin";
  const saving = useSaving();

  async function store(): Promise<void> {
    const body = {
      name: name.trim(),
      value,
      delivery,
      hosts: hosts.split(/[\s,]+/).filter(Boolean),
      ...(description.trim() ? { description: description.trim() } : {}),
      ...(delivery !== "environment" && username.trim() ? { username: username.trim() } : {}),
      ...(delivery === "proxy" && header.trim() ? { header: header.trim() } : {}),
      ...(isShared ? { shared: true } : {}),
    };
    await answered(api.POST("/api/v1/secrets", { body }));
    setName("");
    setValue("");
    setHosts("");
    setDescription("");
    setUsername("");
    setHeader("");
    setShared(false);
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
          hint={delivery === "environment" ? "Where it belongs; programs that see it can send it anywhere." : "Only requests to these hosts carry it. Separate several by commas."}
        />
        {delivery === "proxy" && (
          <TextField label="Header" value={header} onChange={setHeader} problem={saving.of("/header")} placeholder="Authorization" hint="Empty for Authorization." />
        )}
        {delivery !== "environment" && (
          <TextField label="User name" value={username} onChange={setUsername} problem={saving.of("/username")} hint="Sent with it, if the host wants one." />
        )}
        <TextField label="Description" value={description} onChange={setDescription} problem={saving.of("/description")} hint="What it is for." />
        {isAdmin && <CheckField label="For workspaces of everyone" hint="It belongs to the installation, not to you." checked={isShared} onChange={setShared} />}
      </Form>
    </div>
  );
}
