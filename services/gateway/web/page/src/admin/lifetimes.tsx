/** How long workspaces live, and how many chats run at once. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { answered, api } from "../api/client.ts";
import { queryClient } from "../api/queries.ts";
import type { components } from "../api/schema.d.ts";
import { TextField } from "../forms/fields.tsx";
import { Form, useSaving } from "../forms/form.tsx";
import { Loaded } from "../forms/loaded.tsx";
import { installation } from "./queries.ts";

type Settings = components["schemas"]["InstallationSettings"];
const HOUR_MS = 3_600_000;

export default function LifetimesSection() {
  return <Loaded query={useQuery(installation)} what="settings">{(data) => <Lifetimes settings={data} />}</Loaded>;
}

function Lifetimes({ settings }: { settings: Settings }) {
  const [running, setRunning] = useState(String(settings.running_chats_per_user_max));
  const [hours, setHours] = useState(String(settings.workspace_ttl_ms / HOUR_MS));
  const saving = useSaving();

  async function save(): Promise<void> {
    const body = {
      running_chats_per_user_max: Number(running),
      workspace_ttl_ms: Math.round(Number(hours) * HOUR_MS),
    };
    queryClient.setQueryData(installation.queryKey, await answered(api.PATCH("/api/v1/settings", { body })));
  }

  return (
    <Form saving={saving} onSubmit={() => void saving.save(save, "The lifetimes are saved.")}>
      <TextField
        label="Chats of one user that run at once"
        type="number"
        value={running}
        onChange={setRunning}
        problem={saving.of("/running_chats_per_user_max")}
        hint="0 for no limit. Others wait."
      />
      <TextField
        label="Lifetime of a workspace in hours"
        type="number"
        value={hours}
        onChange={setHours}
        problem={saving.of("/workspace_ttl_ms")}
        hint="0 for that of its template. Templates can fix theirs against it."
      />
    </Form>
  );
}
