/** The way from a provider to its models: what it offers, which of them chats can choose, and the default. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { answered, api, unchangedSince } from "../../api/client.ts";
import { models, queryClient } from "../../api/queries.ts";
import type { components } from "../../api/schema.d.ts";
import { CheckField, TextField } from "../../forms/fields.tsx";
import { Form, useSaving } from "../../forms/form.tsx";
import { Button } from "../../ui/button.tsx";
import { plural } from "../../ui/format.ts";
import { Notice } from "../../ui/states.tsx";
import { complain, say } from "../../ui/toasts.tsx";

type Provider = components["schemas"]["Provider"];
type Check = components["schemas"]["CheckProviderResponse"];
type Model = components["schemas"]["Model"];

const SHOWN_MAX = 50;
/** From so many on, a list is searched and not read. */
const SEARCHED_FROM = 9;

async function refresh(): Promise<void> {
  await queryClient.invalidateQueries({ queryKey: models.queryKey });
}

/** Let new chats begin with a model. */
export async function makeDefault(model: Model): Promise<void> {
  const params = { path: { model_id: model.id }, header: unchangedSince(model) };
  try {
    await answered(api.PATCH("/api/v1/models/{model_id}", { params, body: { is_default: true } }));
    say(`New chats begin with ${model.display_name}.`);
  } catch (error) {
    complain(error);
  }
  await refresh();
}

interface Props {
  provider: Provider;
  check: Check | undefined;
  isChecking: boolean;
  onCheck: () => void;
}

export function ProviderModels({ provider, check, isChecking, onCheck }: Props) {
  const known = useQuery(models).data?.items;
  const added = (known ?? []).filter((each) => each.provider_id === provider.id);
  const offered = (check?.model_names ?? []).filter((name) => !added.some((each) => each.name === name));
  return (
    <>
      {added.length > 0 && <Added added={added} name={provider.display_name} />}
      {known && added.length === 0 && !check && (
        <Notice
          kind="warn"
          title="No chat can use it yet"
          actions={!provider.from_environment && <Button small disabled={isChecking} onClick={onCheck}>Choose models</Button>}
        >
          None of its models is added.
        </Notice>
      )}
      {check?.model_names.length === 0 && (
        <Notice kind="warn" title={`${provider.display_name} listed no models`}>
          The reason is beside the key. A model whose name you know can be added under <Link href="/admin/models">Models</Link>.
        </Notice>
      )}
      {check && check.model_names.length > 0 && (
        <p role="status">It offers {plural(check.model_names.length, "model")}{offered.length === 0 && ", and all of them are added"}.</p>
      )}
      {offered.length > 0 && !provider.from_environment && (
        <Offered provider={provider} offered={offered} hasDefault={(known ?? []).some((each) => each.is_default && !each.from_environment)} />
      )}
    </>
  );
}

function Added({ added, name }: { added: readonly Model[]; name: string }) {
  return (
    <div>
      <ul className="name-list" aria-label={`Models of ${name}`}>
        {added.map((each) => (
          <li key={each.id}>
            <span className="cell-main">{each.display_name}</span>
            {!each.enabled && <span className="badge">Disabled</span>}
            {each.is_default && <span className="badge is-accent">Default of new chats</span>}
            {!each.is_default && each.enabled && !each.from_environment && (
              <Button small look="quiet" aria-label={`Make ${each.display_name} the default`} onClick={() => void makeDefault(each)}>
                Make it the default
              </Button>
            )}
          </li>
        ))}
      </ul>
      <p className="field-hint">Prices, limits and efforts are set under <Link href="/admin/models">Models</Link>.</p>
    </div>
  );
}

interface OfferedProps {
  provider: Provider;
  offered: readonly string[];
  /** Whether an administrator chose a default already. */
  hasDefault: boolean;
}

function Offered({ provider, offered, hasDefault }: OfferedProps) {
  const [chosen, setChosen] = useState<readonly string[]>([]);
  const [wanted, setWanted] = useState("");
  const [isDefault, setDefault] = useState(!hasDefault);
  const saving = useSaving();
  const found = offered.filter((name) => name.toLowerCase().includes(wanted.trim().toLowerCase()));
  const first = chosen[0];

  async function add(): Promise<void> {
    for (const name of chosen) {
      const body = { provider_id: provider.id, name, ...(isDefault && name === first ? { is_default: true } : {}) };
      await answered(api.POST("/api/v1/models", { body }));
      setChosen((left) => left.filter((each) => each !== name));
      await refresh();
    }
  }

  return (
    <Form
      saving={saving}
      label={chosen.length ? `Add ${plural(chosen.length, "model")}` : "Add the chosen models"}
      disabled={chosen.length === 0}
      onSubmit={() => void saving.save(add, "Chats can choose what was added.")}
    >
      {offered.length >= SEARCHED_FROM && <TextField label="Find a model" value={wanted} onChange={setWanted} />}
      <fieldset className="field">
        <legend className="field-label">Which may chats use?</legend>
        {found.slice(0, SHOWN_MAX).map((name) => (
          <CheckField
            key={name}
            label={name}
            checked={chosen.includes(name)}
            onChange={(isOn) => setChosen(isOn ? [...chosen, name] : chosen.filter((each) => each !== name))}
          />
        ))}
        {found.length > SHOWN_MAX && <span className="field-hint">{found.length - SHOWN_MAX} more: write a part of the name above.</span>}
        {found.length === 0 && <span className="field-hint">No name has these letters.</span>}
      </fieldset>
      {first !== undefined && <CheckField label={`New chats begin with ${first}`} checked={isDefault} onChange={setDefault} />}
    </Form>
  );
}
