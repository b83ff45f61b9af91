/** One's own name and address. */
import { queryOptions, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { answered, api } from "../api/client.ts";
import { Problem } from "../api/problem.ts";
import { me, queryClient } from "../api/queries.ts";
import type { Me } from "../api/types.ts";
import { TextField } from "../forms/fields.tsx";
import { Form, useSaving } from "../forms/form.tsx";
import { Loaded } from "../forms/loaded.tsx";

const CHANGED = 412;

interface Version {
  who: Me;
  etag: string;
}

/** The profile with the version that a change of it names: a later one is not overwritten unseen. */
const profileVersion = queryOptions({
  queryKey: ["profile-version"],
  staleTime: 0,
  gcTime: 0,
  refetchOnWindowFocus: false,
  queryFn: async ({ signal }): Promise<Version> => {
    const call = api.GET("/api/v1/me", { signal });
    const who = await answered(call);
    return { who, etag: (await call).response.headers.get("ETag") ?? "" };
  },
});

export default function ProfileSection() {
  return (
    <Loaded query={useQuery(profileVersion)} what="profile">
      {(read) => <Profile key={read.who.id} read={read} />}
    </Loaded>
  );
}

function Profile({ read }: { read: Version }) {
  // What the fields were filled with, or what was told since; a reading between is not seen.
  const [seen, setSeen] = useState(read);
  const { who, etag } = seen;
  const [name, setName] = useState(who.display_name);
  const [email, setEmail] = useState(who.email ?? "");
  const saving = useSaving();

  async function save(): Promise<void> {
    const body = { display_name: name.trim(), email: email.trim() || null };
    try {
      const changed = await answered(api.PATCH("/api/v1/me", { params: { header: { "If-Match": etag } }, body }));
      queryClient.setQueryData(me.queryKey, { ...who, ...changed });
      await queryClient.invalidateQueries({ queryKey: profileVersion.queryKey });
      setSeen(queryClient.getQueryData(profileVersion.queryKey) ?? seen);
    } catch (error) {
      if (!(error instanceof Problem) || error.status !== CHANGED) throw error;
      const current = await queryClient.fetchQuery(profileVersion);
      setSeen(current);
      throw new Error(`It was changed meanwhile to ${[current.who.display_name, current.who.email].filter(Boolean).join(", ")}. Save replaces that.`);
    }
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
