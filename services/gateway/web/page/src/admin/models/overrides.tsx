/** Which models serve purposes other than the turns of chats. */
import { useQuery } from "@tanstack/react-query";
import { answered, api } from "../../api/client.ts";
import { models, queryClient } from "../../api/queries.ts";
import type { components } from "../../api/schema.d.ts";
import { CheckField, SelectField } from "../../forms/fields.tsx";
import { Loaded } from "../../forms/loaded.tsx";
import { complain } from "../../ui/toasts.tsx";
import { installation, overrides } from "../queries.ts";
import { modelOptions } from "../../models/model-label.ts";

type Purpose = components["schemas"]["ModelPurpose"];

const PURPOSES: readonly (readonly [Purpose, string])[] = [
  ["utility", "Titles, labels and summaries of chats"],
  ["title", "Titles alone"],
  ["compaction", "Summaries of long histories"],
  ["general", "Agents that a chat starts"],
  ["explore", "Agents that only explore"],
];

export function Overrides() {
  const offered = useQuery(models).data?.items ?? [];
  const options: [string, string][] = [
    ["", "The model of the chat"],
    ...modelOptions(offered),
  ];

  async function set(purpose: Purpose, modelId: string): Promise<void> {
    const params = { path: { purpose } };
    const change = modelId
      ? answered(api.PUT("/api/v1/model-overrides/{purpose}", { params, body: { model_id: modelId } }))
      : answered(api.DELETE("/api/v1/model-overrides/{purpose}", { params }));
    await change.catch(complain);
    await queryClient.invalidateQueries({ queryKey: overrides.queryKey });
  }

  async function setFallback(modelId: string): Promise<void> {
    const change = answered(api.PATCH("/api/v1/settings", { body: { fallback_model_id: modelId || null } }));
    const changed = await change.catch(complain);
    if (changed) queryClient.setQueryData(installation.queryKey, changed);
  }

  async function allowOwn(isAllowed: boolean): Promise<void> {
    const change = answered(api.PATCH("/api/v1/settings", { body: { own_model_overrides_allowed: isAllowed } }));
    const changed = await change.catch(complain);
    if (changed) queryClient.setQueryData(installation.queryKey, changed);
  }

  return (
    <div className="section-part">
      <h3 className="section-part-title">Models for other purposes</h3>
      <Loaded query={useQuery(installation)} what="settings">
        {(data) => (
          <div className="form">
            <SelectField
              label="Answers when a provider is down or over quota"
              value={data.fallback_model_id ?? ""}
              options={[["", "None: the turn waits and tries again"], ...options.slice(1)]}
              onChange={(modelId) => void setFallback(modelId)}
            />
            <CheckField
              label="People may have own models"
              hint="For chats without a chosen model and for agents, in their settings."
              checked={data.own_model_overrides_allowed}
              onChange={(isAllowed) => void allowOwn(isAllowed)}
            />
          </div>
        )}
      </Loaded>
      <Loaded query={useQuery(overrides)} what="list of purposes">
        {(data) => (
          <div className="form">
            {PURPOSES.map(([purpose, words]) => (
              <SelectField
                key={purpose}
                label={words}
                value={data.items.find((each) => each.purpose === purpose)?.model_id ?? ""}
                options={options}
                onChange={(modelId) => void set(purpose, modelId)}
              />
            ))}
          </div>
        )}
      </Loaded>
    </div>
  );
}
