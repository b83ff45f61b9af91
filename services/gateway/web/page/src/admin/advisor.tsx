/** Whether agents may ask an advisor, a model without tools. */
import { queryOptions, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { answered, api } from "../api/client.ts";
import { models, queryClient } from "../api/queries.ts";
import type { components } from "../api/schema.d.ts";
import { CheckField, SelectField, TextField } from "../forms/fields.tsx";
import { Form, useSaving } from "../forms/form.tsx";
import { Loaded } from "../forms/loaded.tsx";
import { modelOptions } from "../models/model-label.ts";

type Settings = components["schemas"]["AdvisorSettings"];

const advisor = queryOptions({
  queryKey: ["admin", "advisor"],
  queryFn: ({ signal }) => answered(api.GET("/api/v1/settings/advisor", { signal })),
});

export default function AdvisorSection() {
  return <Loaded query={useQuery(advisor)} what="settings of the advisor">{(data) => <Advisor settings={data} />}</Loaded>;
}

function Advisor({ settings }: { settings: Settings }) {
  const [isEnabled, setEnabled] = useState(settings.enabled);
  const [uses, setUses] = useState(String(settings.uses_per_turn_max));
  const [tokens, setTokens] = useState(String(settings.output_tokens_max));
  const [modelId, setModelId] = useState(settings.model_id ?? "");
  const saving = useSaving();
  const options: [string, string][] = [
    ["", "The model of the chat"],
    ...modelOptions(useQuery(models).data?.items ?? []),
  ];

  async function save(): Promise<void> {
    const body = {
      enabled: isEnabled,
      uses_per_turn_max: Number(uses),
      output_tokens_max: Number(tokens),
      model_id: modelId || null,
      ...(modelId && modelId === settings.model_id ? { reasoning_effort: settings.reasoning_effort } : {}),
    };
    queryClient.setQueryData(advisor.queryKey, await answered(api.PUT("/api/v1/settings/advisor", { body })));
  }

  return (
    <Form saving={saving} onSubmit={() => void saving.save(save, "The advisor is saved.")}>
      <p className="field-hint">
        An agent can ask it before a hard decision. It sees the recent conversation, has no tools and changes nothing.
      </p>
      <CheckField label="Agents may ask the advisor" checked={isEnabled} onChange={setEnabled} />
      <SelectField label="Model that advises" value={modelId} options={options} onChange={setModelId} problem={saving.of("/model_id")} />
      <div className="form-row">
        <TextField
          label="Uses in one turn"
          type="number"
          value={uses}
          onChange={setUses}
          problem={saving.of("/uses_per_turn_max")}
        />
        <TextField
          label="Tokens of an answer"
          type="number"
          value={tokens}
          onChange={setTokens}
          problem={saving.of("/output_tokens_max")}
        />
      </div>
    </Form>
  );
}
