/** One's own models: for new chats and agents, favourites, hidden ones, and when each is summarized. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { answered, api } from "../../api/client.ts";
import { models, queryClient } from "../../api/queries.ts";
import type { components } from "../../api/schema.d.ts";
import type { Model, ReasoningEffort } from "../../api/types.ts";
import { effortsOf } from "../../models/picker.tsx";
import { CheckField, SelectField, TextField, withStored } from "../../forms/fields.tsx";
import { useSaving } from "../../forms/form.tsx";
import { Loaded } from "../../forms/loaded.tsx";
import { Table } from "../../forms/table.tsx";
import { modelOptions } from "../../models/model-label.ts";
import { Notice } from "../../ui/states.tsx";
import { complain, say } from "../../ui/toasts.tsx";
import { InOrder } from "../in-order.ts";
import { bodyOf, OF_CHAT, OF_INSTALLATION, type OwnModel, type OwnPurpose, valueOf, withThreshold } from "./own-model.ts";
import { ownModels, ownSettings } from "../queries.ts";

type Settings = components["schemas"]["UserSettings"];

const NEVER_PERCENT = 100;
const PURPOSES: readonly (readonly [OwnPurpose, string, readonly (readonly [string, string])[]])[] = [
  ["root", "New chats, until you choose another", [[OF_CHAT, "The default of this installation"]]],
  [
    "general",
    "Agents that your chats start",
    [
      [OF_INSTALLATION, "As administrators chose"],
      [OF_CHAT, "The model of the chat"],
    ],
  ],
  [
    "explore",
    "Agents that only read and search",
    [
      [OF_INSTALLATION, "As administrators chose"],
      [OF_CHAT, "The model of the chat"],
    ],
  ],
];

export default function ModelsSection() {
  const offered = useQuery(models);
  const settings = useQuery(ownSettings);
  return (
    <>
      <div className="section-part">
        <h3 className="section-part-title">Which model answers</h3>
        <Loaded query={useQuery(ownModels)} what="own models">
          {(data) => (
            <>
              {!data.allowed && (
                <Notice kind="warn" title="Own models are switched off">
                  Administrators switched them off here: what is chosen below has no effect.
                </Notice>
              )}
              <div className="form">
                {PURPOSES.map(([purpose, label, defaults]) => (
                  <Purpose
                    key={purpose}
                    label={label}
                    defaults={defaults}
                    own={data.items.find((each) => each.purpose === purpose)}
                    purpose={purpose}
                    offered={(offered.data?.items ?? []).filter((each) => each.enabled)}
                    disabled={!data.allowed}
                  />
                ))}
              </div>
            </>
          )}
        </Loaded>
      </div>
      <div className="section-part">
        <h3 className="section-part-title">Your list of models</h3>
        <Loaded query={offered} what="list of models">
          {(list) => (
            <Loaded query={settings} what="settings">
              {(own) => <ModelTable rows={list.items} settings={own} />}
            </Loaded>
          )}
        </Loaded>
      </div>
    </>
  );
}

interface PurposeProps {
  purpose: OwnPurpose;
  label: string;
  defaults: readonly (readonly [string, string])[];
  own: OwnModel | undefined;
  offered: readonly Model[];
  disabled: boolean;
}

function Purpose({ purpose, label, defaults, own, offered, disabled }: PurposeProps) {
  const saving = useSaving();
  const value = valueOf(own);
  const efforts = effortsOf(offered.find((each) => each.id === value));
  const options = [...defaults, ...modelOptions(offered)];

  async function set(next: string, effort: ReasoningEffort | null): Promise<void> {
    const params = { path: { purpose } };
    await answered(api.PUT("/api/v1/me/model-overrides/{purpose}", { params, body: bodyOf(next, effort) }));
    await queryClient.invalidateQueries({ queryKey: ownModels.queryKey });
  }

  return (
    <div className="form-row">
      <SelectField
        label={label}
        value={value}
        options={withStored(options, value)}
        disabled={disabled || saving.isBusy}
        problem={saving.problem || undefined}
        onChange={(next) => void saving.save(() => set(next, null), "Your model is saved.")}
      />
      {efforts.length > 0 && (
        <SelectField
          label={`Effort: ${label.toLowerCase()}`}
          value={own?.reasoning_effort ?? ""}
          options={[["", "That of the model"], ...efforts.map((each) => [each, each] as const)]}
          disabled={disabled || saving.isBusy}
          onChange={(effort) => void saving.save(() => set(value, (effort || null) as ReasoningEffort | null), "Your effort is saved.")}
        />
      )}
    </div>
  );
}

/** Lists are stored whole: one that is changed again before the answer begins with the new one. */
const changes = new InOrder();

async function save(change: (was: Settings) => Partial<Settings>): Promise<void> {
  await changes.run(async () => {
    const body = change(await queryClient.ensureQueryData(ownSettings));
    queryClient.setQueryData(ownSettings.queryKey, await answered(api.PATCH("/api/v1/me/settings", { body })));
  });
  await queryClient.invalidateQueries({ queryKey: models.queryKey });
}

function ModelTable({ rows, settings }: { rows: readonly Model[]; settings: Settings }) {
  function listed(name: "favourite_model_ids" | "hidden_model_ids", id: string, isOn: boolean): void {
    void save((was) => {
      const others = was[name].filter((each) => each !== id);
      return { [name]: isOn ? [...others, id] : others };
    }).catch(complain);
  }
  return (
    <Table
      label="Your list of models"
      rows={rows}
      keyOf={(row) => row.id}
      empty={{ title: "No models", text: "An administrator adds providers and models." }}
      columns={[
        {
          title: "Model",
          cell: (row) => (
            <>
              <span className="cell-main">{row.display_name || row.name}</span>
              <span className="cell-side">{row.provider_display_name}</span>
            </>
          ),
        },
        {
          title: "First in lists",
          cell: (row) => (
            <CheckField
              label="Favourite"
              checked={settings.favourite_model_ids.includes(row.id)}
              onChange={(isOn) => listed("favourite_model_ids", row.id, isOn)}
            />
          ),
        },
        {
          title: "In the picker",
          cell: (row) => (
            <CheckField
              label="Hidden"
              checked={settings.hidden_model_ids.includes(row.id)}
              onChange={(isOn) => listed("hidden_model_ids", row.id, isOn)}
            />
          ),
        },
        { title: "Summarized", cell: (row) => <Threshold model={row} percents={settings.compaction_threshold_percents} /> },
      ]}
    />
  );
}

function Threshold({ model, percents }: { model: Model; percents: Settings["compaction_threshold_percents"] }) {
  const stored = percents[model.id];
  const [text, setText] = useState(stored === undefined ? "" : String(stored));
  const saving = useSaving();
  const pointer = `/compaction_threshold_percents/${model.id}`;

  async function store(): Promise<void> {
    await save((was) => ({
      compaction_threshold_percents: withThreshold(was.compaction_threshold_percents, model.id, text),
    }));
    say("Your threshold is saved.");
  }

  return (
    <form
      className="form-row"
      onSubmit={(event) => {
        event.preventDefault();
        void saving.save(store);
      }}
    >
      <TextField
        label="At percent of the window"
        type="number"
        value={text}
        onChange={setText}
        placeholder={String(model.compaction_threshold_percent)}
        problem={saving.of(pointer) ?? (saving.problem || undefined)}
        hint={
          Number(text || model.compaction_threshold_percent) === NEVER_PERCENT
            ? "Never summarized: a long chat ends with an error."
            : "Empty for that of the model; Enter saves."
        }
      />
    </form>
  );
}
