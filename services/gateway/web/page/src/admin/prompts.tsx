/** What every chat is told, and how chats behave at their limits. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { answered, api } from "../api/client.ts";
import { queryClient } from "../api/queries.ts";
import type { components } from "../api/schema.d.ts";
import { AreaField, CheckField } from "../forms/fields.tsx";
import { Form, useSaving } from "../forms/form.tsx";
import { Loaded } from "../forms/loaded.tsx";
import { installation } from "./queries.ts";

type Settings = components["schemas"]["InstallationSettings"];

export default function PromptsSection() {
  return <Loaded query={useQuery(installation)} what="settings">{(data) => <Prompts settings={data} />}</Loaded>;
}

function Prompts({ settings }: { settings: Settings }) {
  const [system, setSystem] = useState(settings.system_prompt);
  const [hasDefault, setHasDefault] = useState(settings.include_default_system_prompt);
  const [plan, setPlan] = useState(settings.plan_mode_instructions);
  const [continues, setContinues] = useState(settings.compact_on_final_step);
  const [untrusted, setUntrusted] = useState(settings.untrusted_repositories);
  const saving = useSaving();

  async function save(): Promise<void> {
    const body = {
      system_prompt: system,
      include_default_system_prompt: hasDefault,
      plan_mode_instructions: plan,
      compact_on_final_step: continues,
      untrusted_repositories: untrusted,
    };
    queryClient.setQueryData(installation.queryKey, await answered(api.PATCH("/api/v1/settings", { body })));
  }

  return (
    <Form saving={saving} onSubmit={() => void saving.save(save, "The instructions are saved.")}>
      <AreaField
        label="Instructions of every new chat"
        value={system}
        onChange={setSystem}
        problem={saving.of("/system_prompt")}
      />
      <CheckField
        label="Parley's own instructions come before them"
        checked={hasDefault}
        onChange={setHasDefault}
      />
      <AreaField
        label="More instructions for plan mode"
        value={plan}
        onChange={setPlan}
        rows={5}
        problem={saving.of("/plan_mode_instructions")}
      />
      <CheckField
        label="Summarise and go on"
        hint="when the last answer of a turn fills the context window"
        checked={continues}
        onChange={setContinues}
      />
      <CheckField
        label="Files of cloned repositories are content from outside"
        hint="after reading them, calls that could send data out ask first"
        checked={untrusted}
        onChange={setUntrusted}
      />
    </Form>
  );
}
