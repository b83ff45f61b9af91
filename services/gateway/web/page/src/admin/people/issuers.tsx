/** Identity providers (OpenID Connect) with which people sign in. */
import { queryOptions, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { answered, api } from "../../api/client.ts";
import { queryClient } from "../../api/queries.ts";
import type { components } from "../../api/schema.d.ts";
import { ConfirmButton } from "../../forms/confirm.tsx";
import { CheckField, SelectField, TextField } from "../../forms/fields.tsx";
import { Form, useSaving } from "../../forms/form.tsx";
import { Loaded } from "../../forms/loaded.tsx";
import { Table } from "../../forms/table.tsx";
import { Button } from "../../ui/button.tsx";

type Issuer = components["schemas"]["OidcIssuer"];
type Role = "member" | "auditor";

const ROLES: readonly (readonly [Role, string])[] = [
  ["member", "Member"],
  ["auditor", "Auditor"],
];
const issuers = queryOptions({
  queryKey: ["admin", "oidc-issuers"],
  queryFn: ({ signal }) => answered(api.GET("/api/v1/oidc-issuers", { signal })),
});

async function refresh(): Promise<void> {
  await Promise.all([
    queryClient.invalidateQueries({ queryKey: issuers.queryKey }),
    queryClient.invalidateQueries({ queryKey: ["configuration"] }),
  ]);
}

export default function IssuersSection() {
  const [edited, setEdited] = useState<Issuer | null>(null);
  const query = useQuery(issuers);
  return (
    <>
      <IssuerForm
        key={edited ? `${edited.name}:${edited.version}` : ""}
        issuer={edited}
        known={query.data?.items}
        onDone={() => setEdited(null)}
      />
      <Loaded query={query} what="list of identity providers">
        {(data) => (
          <Table
            label="Identity providers"
            rows={data.items}
            keyOf={(row) => row.name}
            empty={{ title: "No identity providers", text: "People sign in with passwords and passkeys until you add one." }}
            columns={[
              {
                title: "Name",
                cell: (row) => (
                  <>
                    <span className="cell-main">{row.display_name}</span>
                    <span className="cell-side">{row.issuer}</span>
                  </>
                ),
              },
              { title: "Redirect URI", cell: (row) => <code>{row.redirect_uri}</code> },
              { title: "Creates users", cell: (row) => (row.creates_users ? `as ${row.role ?? "member"}` : "no") },
              {
                title: "",
                cell: (row) =>
                  row.is_read_only ? <span className="badge">From the file, read-only</span> : <Commands issuer={row} onEdit={setEdited} />,
              },
            ]}
          />
        )}
      </Loaded>
    </>
  );
}

function Commands({ issuer, onEdit }: { issuer: Issuer; onEdit: (issuer: Issuer) => void }) {
  return (
    <div className="table-actions">
      <Button small onClick={() => onEdit(issuer)}>Edit</Button>
      <ConfirmButton
        label="Delete"
        title={`Delete ${issuer.display_name}?`}
        text="It no longer leads to a sign-in. Users and their links stay."
        onConfirm={async () => {
          const params = { path: { name: issuer.name } };
          await answered(api.DELETE("/api/v1/oidc-issuers/{name}", { params }));
          await refresh();
        }}
      />
    </div>
  );
}

interface FormProps {
  /** The one that is edited; null for a new one. */
  issuer: Issuer | null;
  /** All that there are, once they are read. */
  known: readonly Issuer[] | undefined;
  onDone: () => void;
}

function IssuerForm({ issuer, known, onDone }: FormProps) {
  const [name, setName] = useState(issuer?.name ?? "");
  const [title, setTitle] = useState(issuer?.display_name ?? "");
  const [address, setAddress] = useState(issuer?.issuer ?? "");
  const [clientId, setClientId] = useState(issuer?.client_id ?? "");
  const [secret, setSecret] = useState("");
  const [createsUsers, setCreatesUsers] = useState(issuer?.creates_users ?? false);
  const [linksByEmail, setLinksByEmail] = useState(issuer?.links_by_email ?? false);
  const [role, setRole] = useState<Role>(issuer?.role === "auditor" ? "auditor" : "member");
  const saving = useSaving();
  // Storing under a name that exists would replace that one.
  const isTaken = issuer === null && (known ?? []).some((each) => each.name === name.trim());
  const isKnown = issuer !== null || known !== undefined;
  const hasSecret = issuer?.has_client_secret ?? false;
  // A stored secret is never sent to another issuer than the one that it is for.
  const isMoved = hasSecret && address.trim() !== issuer?.issuer;

  async function store(): Promise<void> {
    const header = issuer ? { "If-Match": `"${issuer.version}"` } : {};
    const body = {
      display_name: title.trim() || name.trim(),
      issuer: address.trim(),
      client_id: clientId.trim(),
      creates_users: createsUsers,
      links_by_email: linksByEmail,
      role,
      // What this form does not show stays as it is.
      ...(issuer ? { scopes: issuer.scopes, groups_claim: issuer.groups_claim, groups: issuer.groups } : {}),
      ...(secret || isMoved ? { client_secret: secret } : {}),
    };
    const params = { path: { name: name.trim() }, header };
    await answered(api.PUT("/api/v1/oidc-issuers/{name}", { params, body }));
    for (const clear of [setName, setTitle, setAddress, setClientId, setSecret]) clear("");
    await refresh();
    onDone();
  }

  return (
    <div className="section-part">
      <Form
        saving={saving}
        label={issuer ? "Save" : "Add the identity provider"}
        disabled={!isKnown || isTaken || !name.trim() || !address.trim() || !clientId.trim()}
        onSubmit={() => void saving.save(store, "The identity provider is stored.")}
        {...(issuer ? { onCancel: onDone } : {})}
      >
        <div className="form-row">
          <TextField
            label="Name in addresses"
            value={name}
            onChange={setName}
            disabled={issuer !== null}
            problem={isTaken ? "There is one of this name: edit it below." : saving.of("/name")}
            placeholder="corp"
          />
          <TextField label="Shown as" value={title} onChange={setTitle} problem={saving.of("/display_name")} placeholder="Corp" />
        </div>
        <TextField label="Issuer" type="url" value={address} onChange={setAddress} problem={saving.of("/issuer")} placeholder="https://login.corp.example" />
        <div className="form-row">
          <TextField label="Client id" value={clientId} onChange={setClientId} problem={saving.of("/client_id")} />
          <TextField
            label="Client secret"
            type="password"
            value={secret}
            onChange={setSecret}
            problem={saving.of("/client_secret")}
            hint={isMoved ? "The stored one was for the other address. Empty for a public client." : hasSecret ? "Empty keeps the stored one." : "Empty for a public client."}
          />
        </div>
        <CheckField label="Creates users at their first sign-in" checked={createsUsers} onChange={setCreatesUsers} />
        {createsUsers && <SelectField label="Role of created users" value={role} options={ROLES} onChange={setRole} />}
        <CheckField
          label="Links by email"
          hint="A verified address links a user who has no way to sign in yet."
          checked={linksByEmail}
          onChange={setLinksByEmail}
        />
      </Form>
    </div>
  );
}
