/** One's own name and address. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { answered, api } from "../api/client.ts";
import { me, queryClient } from "../api/queries.ts";
import type { Me } from "../api/types.ts";
import { TextField } from "../forms/fields.tsx";
import { Form, useSaving } from "../forms/form.tsx";
import { Loaded } from "../forms/loaded.tsx";

export default function ProfileSection() {
  return (
    <Loaded query={useQuery(me)} what="profile">
      {(who) => <Profile key={who.id} who={who} />}
    </Loaded>
  );
}

function Profile({ who }: { who: Me }) {
  const [name, setName] = useState(who.display_name);
  const [email, setEmail] = useState(who.email ?? "");
  const saving = useSaving();

  async function save(): Promise<void> {
    const body = { display_name: name.trim(), email: email.trim() || null };
    queryClient.setQueryData(me.queryKey, {
      ...who,
      ...(await answered(api.PATCH("/api/v1/me", { body }))),
    });
  }

  return (
    <Form saving={saving} onSubmit={() => void saving.save(save, "Your profile is saved.")}>
      <TextField
        label="Name"
        value={name}
        onChange={setName}
        maxLength={100}
        autoComplete="name"
        problem={saving.of("/display_name")}
        hint="Others see it on what you share."
      />
      <TextField
        label="E-mail"
        type="email"
        value={email}
        onChange={setEmail}
        autoComplete="email"
        problem={saving.of("/email")}
      />
      <p className="field-hint">
        You sign in as <strong>{who.login}</strong>. Your role is {who.role ?? "unknown"}.
      </p>
    </Form>
  );
}
