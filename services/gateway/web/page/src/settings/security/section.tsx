/** How one signs in: password, second factor, passkeys. */
import { queryOptions, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { answered, api } from "../../api/client.ts";
import { queryClient } from "../../api/queries.ts";
import { ConfirmButton } from "../../forms/confirm.tsx";
import { TextField } from "../../forms/fields.tsx";
import { Form, useSaving } from "../../forms/form.tsx";
import { Loaded } from "../../forms/loaded.tsx";
import { ShownOnce } from "../../forms/shown-once.tsx";
import { Table } from "../../forms/table.tsx";
import { hasPasskeys } from "../../sign-in/passkey.ts";
import { Button } from "../../ui/button.tsx";
import { ago } from "../../ui/format.ts";
import { Identities } from "./identities.tsx";

const factors = queryOptions({
  queryKey: ["me", "second-factors"],
  queryFn: ({ signal }) => answered(api.GET("/api/v1/me/second-factors", { signal })),
});

async function refresh(): Promise<void> {
  await queryClient.invalidateQueries({ queryKey: factors.queryKey });
}

export default function SecuritySection() {
  return (
    <>
      <Password />
      <Loaded query={useQuery(factors)} what="second factors">
        {(data) => (
          <>
            <Authenticator confirmedAt={data.totp_confirmed_at} codesLeft={data.recovery_codes_left} />
            <Passkeys rows={data.passkeys} />
          </>
        )}
      </Loaded>
      <Identities />
    </>
  );
}

function Password() {
  const [current, setCurrent] = useState("");
  const [wanted, setWanted] = useState("");
  const saving = useSaving();

  async function change(): Promise<void> {
    const body = { new_password: wanted, ...(current ? { current_password: current } : {}) };
    await answered(api.POST("/api/v1/me/password", { body }));
    setCurrent("");
    setWanted("");
  }

  return (
    <div className="section-part">
      <h3 className="section-part-title">Password</h3>
      <Form
        saving={saving}
        label="Change the password"
        disabled={!wanted}
        onSubmit={() => void saving.save(change, "Your password is changed; other sessions have ended.")}
      >
        <TextField
          label="Current password"
          type="password"
          autoComplete="current-password"
          value={current}
          onChange={setCurrent}
          problem={saving.of("/current_password")}
          hint="Empty if you have none yet."
        />
        <TextField
          label="New password"
          type="password"
          autoComplete="new-password"
          value={wanted}
          onChange={setWanted}
          problem={saving.of("/new_password")}
        />
      </Form>
    </div>
  );
}

function Authenticator({ confirmedAt, codesLeft }: { confirmedAt: string | null; codesLeft: number }) {
  const [begun, setBegun] = useState<{ secret: string; uri: string }>();
  const [code, setCode] = useState("");
  const [codes, setCodes] = useState<readonly string[]>([]);
  const saving = useSaving();

  async function confirm(): Promise<void> {
    const made = await answered(api.POST("/api/v1/me/totp/confirm", { body: { code } }));
    setCodes(made.recovery_codes);
    setBegun(undefined);
    setCode("");
    await refresh();
  }

  async function renew(): Promise<void> {
    setCodes((await answered(api.POST("/api/v1/me/recovery-codes", { body: { code } }))).recovery_codes);
    setCode("");
    await refresh();
  }

  async function remove(): Promise<void> {
    await answered(api.POST("/api/v1/me/totp/remove", { body: { code } }));
    setCode("");
    await refresh();
  }

  return (
    <div className="section-part">
      <h3 className="section-part-title">Authenticator app</h3>
      {codes.length > 0 && (
        <ShownOnce title="Your recovery codes, each for one sign-in" value={codes.join(" ")} onClose={() => setCodes([])} />
      )}
      {!confirmedAt && !begun && (
        <div>
          <p className="field-hint">A code of an app is asked for after your password.</p>
          <Button
            onClick={() =>
              void saving.save(async () => setBegun(await answered(api.POST("/api/v1/me/totp", { body: {} }))))
            }
          >
            Add an authenticator app
          </Button>
        </div>
      )}
      {begun && (
        <Form saving={saving} label="Confirm" disabled={!code} onSubmit={() => void saving.save(confirm, "The app is added.")}>
          <p>
            Add this key to your app, then enter the code that it shows: <code className="once-value">{begun.secret}</code>
          </p>
          <p>
            <a href={begun.uri}>Open it in an app on this device</a>
          </p>
          <TextField label="Code" value={code} onChange={setCode} autoComplete="one-time-code" problem={saving.of("/code")} />
        </Form>
      )}
      {confirmedAt && (
        <Form
          saving={saving}
          label="New recovery codes"
          disabled={!code}
          onSubmit={() => void saving.save(renew, "The old recovery codes are void.")}
        >
          <p>
            Added on {confirmedAt.slice(0, 10)}. {codesLeft} recovery codes are left.
          </p>
          <TextField
            label="Code of the app"
            value={code}
            onChange={setCode}
            autoComplete="one-time-code"
            problem={saving.of("/code")}
            hint="Needed for new recovery codes and to remove the app."
          />
          <div>
            <Button look="danger" disabled={!code} onClick={() => void saving.save(remove, "The app is removed.")}>
              Remove the app
            </Button>
          </div>
        </Form>
      )}
      {saving.problem && !begun && !confirmedAt && (
        <p className="field-problem" role="alert">
          {saving.problem}
        </p>
      )}
    </div>
  );
}

interface Passkey {
  id: string;
  name: string;
  created_at: string | null;
  last_used_at: string | null;
}

function Passkeys({ rows }: { rows: readonly Passkey[] }) {
  const [name, setName] = useState("");
  const saving = useSaving();
  const now = Date.now();

  async function add(): Promise<void> {
    const begun = await answered(api.POST("/api/v1/me/passkeys/options", { body: {} }));
    const credential = await newPasskey(begun.options);
    const body = { continuation: begun.continuation, name: name.trim(), credential };
    await answered(api.POST("/api/v1/me/passkeys", { body }));
    setName("");
    await refresh();
  }

  async function remove(passkeyId: string): Promise<void> {
    const params = { path: { passkey_id: passkeyId } };
    await answered(api.DELETE("/api/v1/me/passkeys/{passkey_id}", { params }));
    await refresh();
  }

  return (
    <div className="section-part">
      <h3 className="section-part-title">Passkeys</h3>
      {hasPasskeys() ? (
        <Form
          saving={saving}
          label="Add a passkey"
          disabled={!name.trim()}
          onSubmit={() => void saving.save(add, "The passkey is added.")}
        >
          <TextField label="Name of the new passkey" value={name} onChange={setName} placeholder="phone" />
        </Form>
      ) : (
        <p className="field-hint">This browser, or this address, does not support passkeys: they need HTTPS.</p>
      )}
      <Table
        label="Passkeys"
        rows={rows}
        keyOf={(row) => row.id}
        empty={{ title: "No passkeys", text: "With one you sign in without a password." }}
        columns={[
          { title: "Name", cell: (row) => <span className="cell-main">{row.name}</span> },
          { title: "Added", cell: (row) => ago(row.created_at, now) },
          { title: "Last used", cell: (row) => ago(row.last_used_at, now) || "never" },
          {
            title: "",
            cell: (row) => (
              <ConfirmButton
                label="Remove"
                title={`Remove ${row.name}?`}
                text="You cannot sign in with it any more."
                done="The passkey is removed."
                onConfirm={() => remove(row.id)}
              />
            ),
          },
        ]}
      />
    </div>
  );
}

/** Make a passkey on this device, for the options that the server gave. */
async function newPasskey(given: unknown): Promise<Record<string, never>> {
  const options = given as
    | PublicKeyCredentialCreationOptionsJSON
    | { publicKey: PublicKeyCredentialCreationOptionsJSON };
  const json = "publicKey" in options ? options.publicKey : options;
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(json);
  const credential = (await navigator.credentials.create({ publicKey })) as PublicKeyCredential | null;
  if (!credential) throw new Error("No passkey was made.");
  return credential.toJSON() as unknown as Record<string, never>;
}
