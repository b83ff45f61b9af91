/** The people and service accounts of the installation. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Exports } from "../../account/exports.tsx";
import { exportsOf } from "../../account/sources.ts";
import { answered, api } from "../../api/client.ts";
import { queryClient } from "../../api/queries.ts";
import type { components } from "../../api/schema.d.ts";
import { ConfirmButton } from "../../forms/confirm.tsx";
import { SelectField, TextField } from "../../forms/fields.tsx";
import { Form, useSaving } from "../../forms/form.tsx";
import { Loaded } from "../../forms/loaded.tsx";
import { ShownOnce } from "../../forms/shown-once.tsx";
import { Table } from "../../forms/table.tsx";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { complain } from "../../ui/toasts.tsx";
import { users } from "../queries.ts";

type User = components["schemas"]["User"];
type Role = components["schemas"]["Role"];
type Kind = components["schemas"]["UserKind"];
type Purpose = components["schemas"]["SignInLinkPurpose"];

const ROLES: readonly (readonly [Role, string])[] = [
  ["member", "Member"],
  ["admin", "Administrator"],
  ["auditor", "Auditor"],
  ["owner", "Owner"],
];
const KINDS: readonly (readonly [Kind, string])[] = [
  ["person", "A person"],
  ["service", "A program (service account)"],
];

async function refresh(): Promise<void> {
  await queryClient.invalidateQueries({ queryKey: users.queryKey });
}

interface Link {
  login: string;
  url: string;
}

export default function UsersSection() {
  const [link, setLink] = useState<Link>();

  async function invite(user: Pick<User, "id" | "login">, purpose: Purpose): Promise<void> {
    const params = { path: { user_id: user.id } };
    const made = await answered(api.POST("/api/v1/users/{user_id}/sign-in-links", { params, body: { purpose } }));
    setLink({ login: user.login, url: made.url });
  }

  return (
    <>
      {link && (
        <div className="section-part">
          <ShownOnce title={`A link for ${link.login}, for one use`} value={link.url} onClose={() => setLink(undefined)} />
        </div>
      )}
      <NewUser onMade={(user) => (user.kind === "service" ? undefined : void invite(user, "invitation").catch(complain))} />
      <Loaded query={useQuery(users)} what="list of users">
        {(data) => (
          <Table
            label="Users"
            rows={data.items}
            keyOf={(row) => row.id}
            empty={{ title: "No users", text: "Invite somebody above." }}
            columns={[
              {
                title: "User",
                cell: (row) => (
                  <>
                    <span className="cell-main">{row.display_name || row.login}</span>
                    <span className="cell-side">{[row.login, row.email].filter(Boolean).join(" · ")}</span>
                  </>
                ),
              },
              { title: "Role", cell: (row) => <RoleCell user={row} /> },
              {
                title: "State",
                cell: (row) => (
                  <span className={`badge${row.state === "active" ? " is-accent" : ""}`}>
                    {row.kind === "service" ? "service account, " : ""}
                    {row.state}
                  </span>
                ),
              },
              { title: "", cell: (row) => <UserActions user={row} onInvite={invite} /> },
            ]}
          />
        )}
      </Loaded>
    </>
  );
}

function NewUser({ onMade }: { onMade: (user: User) => void }) {
  const [login, setLogin] = useState("");
  const [email, setEmail] = useState("");
  const [role, setRole] = useState<Role>("member");
  const [kind, setKind] = useState<Kind>("person");
  const saving = useSaving();

  async function make(): Promise<void> {
    const body = { login: login.trim(), email: email.trim() || null, role, kind };
    const made = await answered(api.POST("/api/v1/users", { body }));
    setLogin("");
    setEmail("");
    await refresh();
    onMade(made);
  }

  return (
    <div className="section-part">
      <Form
        saving={saving}
        label={kind === "person" ? "Create and invite" : "Create"}
        disabled={!login.trim()}
        onSubmit={() => void saving.save(make, `${login.trim()} is created.`)}
      >
        <div className="form-row">
          <TextField label="Sign-in name" value={login} onChange={setLogin} problem={saving.of("/login")} />
          <TextField label="E-mail" type="email" value={email} onChange={setEmail} problem={saving.of("/email")} />
        </div>
        <div className="form-row">
          <SelectField label="Role" value={role} options={ROLES.slice(0, 3)} onChange={setRole} problem={saving.of("/role")} />
          <SelectField label="Kind" value={kind} options={KINDS} onChange={setKind} />
        </div>
      </Form>
    </div>
  );
}

function RoleCell({ user }: { user: User }) {
  const role = user.role ?? "member";
  const [wanted, want] = useState<Role>();
  const saving = useSaving();
  if (role === "owner") return <>Owner</>;

  async function change(next: Role): Promise<void> {
    const params = { path: { user_id: user.id }, header: { "If-Match": `"${user.version}"` } };
    await answered(api.PATCH("/api/v1/users/{user_id}", { params, body: { role: next } }));
    await refresh();
  }

  const wordsFor = (each: string): string => ROLES.find(([key]) => key === each)?.[1] ?? each;
  return (
    <>
      <select className="input" aria-label={`Role of ${user.login}`} value={role} onChange={(event) => want(event.target.value as Role)}>
        {ROLES.map(([key, words]) => (
          <option key={key} value={key}>
            {words}
          </option>
        ))}
      </select>
      {wanted && (
        <Dialog title={`Change the role of ${user.login}?`} onClose={() => want(undefined)}>
          <p>
            {user.login} is {wordsFor(role)} and becomes {wordsFor(wanted)}. Service tokens that {user.login} has stop working.
          </p>
          {saving.problem && (
            <p className="field-problem" role="alert">
              {saving.problem}
            </p>
          )}
          <div className="dialog-actions">
            <Button onClick={() => want(undefined)}>Cancel</Button>
            <Button
              look="primary"
              disabled={saving.isBusy}
              onClick={() => void saving.save(() => change(wanted), `${user.login} is ${wordsFor(wanted)} now.`).then((isDone) => isDone && want(undefined))}
            >
              Change the role
            </Button>
          </div>
        </Dialog>
      )}
    </>
  );
}

/** What a user who is locked out leaves behind, for them to take along. */
function ExportButton({ user }: { user: User }) {
  const [isOpen, open] = useState(false);
  return (
    <>
      <Button small onClick={() => open(true)}>Export…</Button>
      {isOpen && (
        <Dialog title={`Export all that is ${user.login}'s`} onClose={() => open(false)}>
          <p>The archive has all chats of this user. Who begins and who downloads an export is in the audit log.</p>
          <Exports source={exportsOf(user.id)} label="Begin the export" />
          <div className="dialog-actions">
            <Button onClick={() => open(false)}>Close</Button>
          </div>
        </Dialog>
      )}
    </>
  );
}

interface UserActionsProps {
  user: User;
  onInvite: (user: User, purpose: Purpose) => Promise<void>;
}

function UserActions({ user, onInvite }: UserActionsProps) {
  const params = { path: { user_id: user.id } };
  if (user.state !== "active") {
    return (
      <div className="table-actions">
        <Button
          small
          onClick={() =>
            void answered(api.POST("/api/v1/users/{user_id}/reactivate", { params, body: {} })).then(refresh, complain)
          }
        >
          Reactivate
        </Button>
        {user.kind !== "service" && <ExportButton user={user} />}
        <ConfirmButton
          label="Delete"
          title={`Delete ${user.login} for good?`}
          text="Their chats, files, keys and secrets are deleted. This cannot be undone."
          done={`${user.login} is deleted.`}
          onConfirm={async () => {
            await answered(api.DELETE("/api/v1/users/{user_id}", { params }));
            await refresh();
          }}
        />
      </div>
    );
  }
  return (
    <div className="table-actions">
      {user.kind !== "service" && (
        <>
          <Button small onClick={() => void onInvite(user, "password_reset").catch(complain)}>
            New password link
          </Button>
          <ConfirmButton
            label="Reset second factors"
            title={`Remove the second factors of ${user.login}?`}
            text="Their authenticator app, recovery codes and passkeys are removed: only do this after you have made sure who asks."
            done="The second factors are removed."
            onConfirm={() =>
              answered(api.POST("/api/v1/users/{user_id}/second-factors/reset", { params, body: {} }))
            }
          />
        </>
      )}
      {user.role !== "owner" && (
        <ConfirmButton
          label="Deactivate"
          title={`Lock ${user.login} out?`}
          text="Their sessions, keys and running turns end at once. Their chats stay, and they can be reactivated."
          done={`${user.login} is locked out.`}
          onConfirm={async () => {
            await answered(api.POST("/api/v1/users/{user_id}/deactivate", { params, body: {} }));
            await refresh();
          }}
        />
      )}
    </div>
  );
}
