/** Model providers: their keys in the order of use, and whether they work. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { answered, api, unchangedSince } from "../../api/client.ts";
import type { components } from "../../api/schema.d.ts";
import { ConfirmButton } from "../../forms/confirm.tsx";
import { CheckField, SelectField, TextField } from "../../forms/fields.tsx";
import { Form, useSaving } from "../../forms/form.tsx";
import { Loaded } from "../../forms/loaded.tsx";
import { Button } from "../../ui/button.tsx";
import { Empty } from "../../ui/states.tsx";
import { complain } from "../../ui/toasts.tsx";
import { ProviderKeys } from "./keys.tsx";
import { ProviderModels } from "./offered-models.tsx";
import { providers, refreshProviders } from "../queries.ts";

type Provider = components["schemas"]["Provider"];
type Type = components["schemas"]["ProviderTypeInput"];
type Check = components["schemas"]["CheckProviderResponse"];

const TYPES: readonly (readonly [Type, string])[] = [
  ["anthropic", "Anthropic"],
  ["openai", "OpenAI"],
  ["openai_compatible", "Compatible with OpenAI"],
  ["azure", "Azure OpenAI"],
  ["bedrock", "Amazon Bedrock"],
];

export default function ProvidersSection() {
  const [checks, setChecks] = useState<ReadonlyMap<string, Check | "running">>(new Map());

  /** Ask a provider about its keys and models; what was known of it is asked again. */
  async function ask(providerId: string): Promise<void> {
    const set = (check: Check | "running" | undefined) =>
      setChecks((known) => new Map([...known].filter(([id]) => id !== providerId).concat(check ? [[providerId, check]] : [])));
    set("running");
    try {
      const params = { path: { provider_id: providerId } };
      set(await answered(api.POST("/api/v1/providers/{provider_id}/check", { params, body: {} })));
    } catch (error) {
      set(undefined);
      complain(error);
    }
  }

  return (
    <>
      <NewProvider onMade={ask} />
      <Loaded query={useQuery(providers)} what="list of providers">
        {(data) =>
          data.items.length ? (
            <div className="cards">
              {data.items.map((each) => (
                <ProviderCard key={each.id} provider={each} check={checks.get(each.id)} onCheck={() => ask(each.id)} />
              ))}
            </div>
          ) : (
            <Empty title="No providers">Add one above: chats use the scripted demo until then. Its keys are checked, and you choose its models.</Empty>
          )
        }
      </Loaded>
    </>
  );
}

function NewProvider({ onMade }: { onMade: (providerId: string) => Promise<void> }) {
  const [name, setName] = useState("");
  const [type, setType] = useState<Type>("anthropic");
  const [baseUrl, setBaseUrl] = useState("");
  const [key, setKey] = useState("");
  // A provider whose key was refused is not made again with the next key.
  const [started, setStarted] = useState<{ id: string; of: string }>();
  const saving = useSaving();

  async function make(): Promise<void> {
    const body = { name: name.trim(), type, ...(baseUrl.trim() ? { base_url: baseUrl.trim() } : {}) };
    const of = JSON.stringify(body);
    const id = started?.of === of ? started.id : (await answered(api.POST("/api/v1/providers", { body }))).id;
    setStarted({ id, of });
    try {
      if (key.trim()) await answered(api.POST("/api/v1/provider-keys", { body: { provider_id: id, key: key.trim() } }));
    } finally {
      await refreshProviders();
    }
    setStarted(undefined);
    setName("");
    setBaseUrl("");
    setKey("");
    // Told by its card when it comes; the form is free meanwhile.
    void onMade(id);
  }

  return (
    <div className="section-part">
      <Form
        saving={saving}
        label="Add the provider"
        disabled={!name.trim()}
        onSubmit={() => void saving.save(make, "The provider is added.")}
      >
        <div className="form-row">
          <TextField label="Name" value={name} onChange={setName} problem={saving.of("/name")} placeholder="anthropic" />
          <SelectField label="Protocol" value={type} options={TYPES} onChange={setType} />
        </div>
        <div className="form-row">
          <TextField
            label="Address"
            type="url"
            value={baseUrl}
            onChange={setBaseUrl}
            problem={saving.of("/base_url")}
            hint="Empty for the provider's own."
          />
          <TextField
            label="Key"
            type="password"
            value={key}
            onChange={setKey}
            problem={saving.of("/key")}
            hint="Checked at once; then you choose its models."
          />
        </div>
      </Form>
    </div>
  );
}

interface CardProps {
  provider: Provider;
  check: Check | "running" | undefined;
  onCheck: () => Promise<void>;
}

function ProviderCard({ provider, check: state, onCheck }: CardProps) {
  const isChecking = state === "running";
  const check = state === "running" ? undefined : state;
  const params = { path: { provider_id: provider.id } };
  const isGiven = provider.from_environment;

  async function change(body: { enabled?: boolean; user_keys_allowed?: boolean }): Promise<void> {
    const header = unchangedSince(provider);
    await answered(api.PATCH("/api/v1/providers/{provider_id}", { params: { ...params, header }, body })).catch(complain);
    await refreshProviders();
  }

  return (
    <section className="card" aria-label={provider.display_name}>
      <header className="card-head">
        <h3 className="section-part-title">{provider.display_name}</h3>
        <span className="badge">{TYPES.find(([type]) => type === provider.type)?.[1] ?? "Scripted"}</span>
        {isGiven && <span className="badge">From the environment, read-only</span>}
      </header>
      {provider.base_url && <p className="field-hint">{provider.base_url}</p>}
      <div className="form-row">
        <CheckField
          label="Enabled"
          checked={provider.enabled}
          disabled={isGiven}
          onChange={(enabled) => void change({ enabled })}
        />
        <CheckField
          label="People may use keys of their own"
          checked={provider.user_keys_allowed}
          disabled={isGiven}
          onChange={(allowed) => void change({ user_keys_allowed: allowed })}
        />
      </div>
      <ProviderKeys provider={provider} check={check} onAdded={onCheck} />
      <ProviderModels provider={provider} check={check} isChecking={isChecking} onCheck={() => void onCheck()} />
      <div className="table-actions">
        <Button small disabled={isChecking} onClick={() => void onCheck()}>
          {isChecking ? "Checking…" : "Check"}
        </Button>
        {!isGiven && (
          <ConfirmButton
            label="Forget"
            title={`Forget ${provider.display_name}?`}
            text="Its models and keys are forgotten too. Chats that chose one of them must choose another."
            onConfirm={async () => {
              await answered(api.DELETE("/api/v1/providers/{provider_id}", { params }));
              await refreshProviders();
            }}
          />
        )}
      </div>
    </section>
  );
}
