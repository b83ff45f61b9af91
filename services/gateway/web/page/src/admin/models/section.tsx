/** Models: which are offered, which is the default, what they cost, and which serve a purpose. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { answered, api, unchangedSince } from "../../api/client.ts";
import { models, queryClient } from "../../api/queries.ts";
import type { components } from "../../api/schema.d.ts";
import { ConfirmButton } from "../../forms/confirm.tsx";
import { CheckField, SelectField, TextField } from "../../forms/fields.tsx";
import { Form, useSaving } from "../../forms/form.tsx";
import { Loaded } from "../../forms/loaded.tsx";
import { Table } from "../../forms/table.tsx";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { count } from "../../ui/format.ts";
import { Overrides } from "./overrides.tsx";
import { makeDefault } from "../providers/offered-models.tsx";
import { providers } from "../queries.ts";

type Model = components["schemas"]["Model"];
type Effort = components["schemas"]["ReasoningEffort"];

const EFFORTS: readonly (readonly [Effort | "", string])[] = [
  ["", "Not set"],
  ["none", "None"],
  ["minimal", "Minimal"],
  ["low", "Low"],
  ["medium", "Medium"],
  ["high", "High"],
  ["xhigh", "Extra high"],
  ["max", "Maximum"],
];

async function refresh(): Promise<void> {
  await queryClient.invalidateQueries({ queryKey: models.queryKey });
}

export default function ModelsSection() {
  const sources = useQuery(providers).data?.items ?? [];
  const nameOf = new Map(sources.map((each) => [each.id, each.display_name]));
  const [open, setOpen] = useState<Model>();
  return (
    <>
      {sources.some((each) => !each.from_environment) && (
        <NewModel
          providers={sources
            .filter((each) => !each.from_environment)
            .map((each) => [each.id, each.display_name] as const)}
        />
      )}
      <div className="section-part">
        <p className="field-hint">
          Which models a provider offers is shown under <Link href="/admin/providers">Providers</Link>, where several can be added at once.
        </p>
        <Loaded query={useQuery(models)} what="list of models">
          {(data) => (
            <Table
              label="Models"
              rows={data.items}
              keyOf={(row) => row.id}
              empty={{ title: "No models", text: <>Chats need one: add a provider and choose its models under <Link href="/admin/providers">Providers</Link>.</> }}
              columns={[
                {
                  title: "Model",
                  cell: (row) => (
                    <>
                      <span className="cell-main">{row.display_name}</span>{" "}
                      {row.is_default && <span className="badge is-accent">Default</span>}
                      <span className="cell-side">
                        {nameOf.get(row.provider_id) ?? row.provider_id} · {row.name}
                      </span>
                    </>
                  ),
                },
                {
                  title: "Context window in tokens",
                  isNumber: true,
                  cell: (row) => {
                    const window = row.effective_context_limit_tokens ?? row.context_limit_tokens;
                    return window ? count(window) : "unknown";
                  },
                },
                { title: "Price per million tokens", isNumber: true, cell: (row) => priceOf(row) },
                { title: "State", cell: (row) => (row.enabled ? "enabled" : "disabled") },
                {
                  title: "",
                  cell: (row) =>
                    row.from_environment ? (
                      <span className="badge">From the environment</span>
                    ) : (
                      <div className="table-actions">
                        {row.enabled && !row.is_default && (
                          <Button small aria-label={`Make ${row.display_name} the default`} onClick={() => void makeDefault(row)}>
                            Make default
                          </Button>
                        )}
                        <Button small aria-label={`Edit ${row.display_name}`} onClick={() => setOpen(row)}>
                          Edit
                        </Button>
                      </div>
                    ),
                },
              ]}
            />
          )}
        </Loaded>
      </div>
      <Overrides />
      {open && <EditModel model={open} onClose={() => setOpen(undefined)} />}
    </>
  );
}

function priceOf(model: Model): string {
  const prices = model.effective_prices;
  if (!prices || (prices.input === null && prices.output === null)) return "no price";
  return `$${prices.input ?? 0} in, $${prices.output ?? 0} out`;
}

function NewModel({ providers: sources }: { providers: readonly (readonly [string, string])[] }) {
  const [providerId, setProviderId] = useState(sources[0]?.[0] ?? "");
  const [name, setName] = useState("");
  const saving = useSaving();

  async function make(): Promise<void> {
    await answered(api.POST("/api/v1/models", { body: { provider_id: providerId, name: name.trim() } }));
    setName("");
    await refresh();
  }

  return (
    <div className="section-part">
      <Form
        saving={saving}
        label="Add the model"
        disabled={!name.trim()}
        onSubmit={() => void saving.save(make, "The model is added.")}
      >
        <div className="form-row">
          <SelectField label="Provider" value={providerId} options={sources} onChange={setProviderId} />
          <TextField
            label="Name at the provider"
            value={name}
            onChange={setName}
            problem={saving.of("/name")}
            hint="Limits and prices of known models come with it."
          />
        </div>
      </Form>
    </div>
  );
}

const PRICES = ["input", "output", "cache_read", "cache_write"] as const;
type PriceName = (typeof PRICES)[number];
const PRICE_WORDS: Record<PriceName, string> = { input: "input", output: "output", cache_read: "read from the cache", cache_write: "written to the cache" };

function EditModel({ model, onClose }: { model: Model; onClose: () => void }) {
  const [name, setName] = useState(model.display_name);
  const [isEnabled, setEnabled] = useState(model.enabled);
  const [isDefault, setDefault] = useState(model.is_default);
  const [window, setWindow] = useState(String(model.context_limit_tokens || ""));
  const [threshold, setThreshold] = useState(String(model.compaction_threshold_percent));
  const [effort, setEffort] = useState<Effort | "">(model.default_effort ?? "");
  const [highest, setHighest] = useState<Effort | "">(model.max_effort ?? "");
  const [prices, setPrices] = useState<Record<PriceName, string>>(() => {
    const known = model.prices;
    const text = (name: PriceName) => (known?.[name] === null || known?.[name] === undefined ? "" : String(known[name]));
    return { input: text("input"), output: text("output"), cache_read: text("cache_read"), cache_write: text("cache_write") };
  });
  const saving = useSaving();
  const params = { path: { model_id: model.id } };

  async function save(): Promise<void> {
    const number = (text: string) => (text.trim() === "" ? null : Number(text));
    const body = {
      display_name: name.trim() || null,
      enabled: isEnabled,
      is_default: isDefault,
      context_limit_tokens: number(window),
      compaction_threshold_percent: number(threshold),
      default_effort: effort || null,
      max_effort: highest || null,
      prices: {
        input: number(prices.input),
        output: number(prices.output),
        cache_read: number(prices.cache_read),
        cache_write: number(prices.cache_write),
      },
    };
    await answered(api.PATCH("/api/v1/models/{model_id}", { params: { ...params, header: unchangedSince(model) }, body }));
    await refresh();
    onClose();
  }

  return (
    <Dialog title={model.display_name} onClose={onClose} wide>
      <Form saving={saving} onSubmit={() => void saving.save(save, "The model is saved.")} onCancel={onClose}>
        <TextField label="Shown as" value={name} onChange={setName} problem={saving.of("/display_name")} />
        <div className="form-row">
          <CheckField label="Enabled" checked={isEnabled} onChange={setEnabled} />
          <CheckField label="Default of new chats" checked={isDefault} onChange={setDefault} />
        </div>
        <div className="form-row">
          <TextField
            label="Context window in tokens"
            type="number"
            value={window}
            onChange={setWindow}
            problem={saving.of("/context_limit_tokens")}
            hint={model.effective_context_limit_tokens ? `Known: ${new Intl.NumberFormat("en").format(model.effective_context_limit_tokens)}` : undefined}
          />
          <TextField
            label="Summarise at percent"
            type="number"
            value={threshold}
            onChange={setThreshold}
            problem={saving.of("/compaction_threshold_percent")}
          />
        </div>
        <div className="form-row">
          <SelectField label="Reasoning effort" value={effort} options={EFFORTS} onChange={setEffort} />
          <SelectField label="Highest effort" value={highest} options={EFFORTS} onChange={setHighest} />
        </div>
        <div className="form-row">
          {PRICES.map((each) => (
            <TextField
              key={each}
              label={`$ per million tokens: ${PRICE_WORDS[each]}`}
              type="number"
              value={prices[each]}
              onChange={(value) => setPrices({ ...prices, [each]: value })}
              problem={saving.of(`/prices/${each}`)}
            />
          ))}
        </div>
      </Form>
      <div>
        <ConfirmButton
          label="Forget the model"
          title={`Forget ${model.display_name}?`}
          text="Chats that chose it must choose another."
          onConfirm={async () => {
            await answered(api.DELETE("/api/v1/models/{model_id}", { params }));
            await refresh();
            onClose();
          }}
        />
      </div>
    </Dialog>
  );
}
