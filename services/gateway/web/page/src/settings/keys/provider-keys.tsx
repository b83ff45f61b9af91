/** One's own keys of model providers. */
import { queryOptions, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { answered, api } from "../../api/client.ts";
import { queryClient } from "../../api/queries.ts";
import { ConfirmButton } from "../../forms/confirm.tsx";
import { SelectField, TextField } from "../../forms/fields.tsx";
import { Form, useSaving } from "../../forms/form.tsx";
import { Loaded } from "../../forms/loaded.tsx";
import { Table } from "../../forms/table.tsx";
import { Empty } from "../../ui/states.tsx";

const keys = queryOptions({
  queryKey: ["me", "provider-keys"],
  queryFn: ({ signal }) => answered(api.GET("/api/v1/me/provider-keys", { signal })),
});

async function refresh(): Promise<void> {
  await queryClient.invalidateQueries({ queryKey: keys.queryKey });
  await queryClient.invalidateQueries({ queryKey: ["models"] });
}

async function forget(keyId: string): Promise<void> {
  const params = { path: { key_id: keyId } };
  await answered(api.DELETE("/api/v1/me/provider-keys/{key_id}", { params }));
  await refresh();
}

export default function ProviderKeysSection() {
  return (
    <Loaded query={useQuery(keys)} what="list of keys">
      {({ items, providers }) => {
        if (providers.length === 0 && items.length === 0) {
          return (
            <Empty title="No provider takes your own key">
              An administrator decides for each provider whether people may use keys of their own.
            </Empty>
          );
        }
        const nameOf = new Map(providers.map((each) => [each.id, each.display_name]));
        return (
          <>
            {providers.length > 0 && <NewKey providers={providers.map((each) => [each.id, each.display_name])} />}
            <Table
              label="Your provider keys"
              rows={items}
              keyOf={(row) => row.id}
              empty={{ title: "No keys of your own", text: "Chats use the keys of the installation." }}
              columns={[
                { title: "Provider", cell: (row) => nameOf.get(row.provider_id ?? "") ?? "A provider that is gone" },
                { title: "Key", cell: (row) => <code>{row.hint}</code> },
                {
                  title: "",
                  cell: (row) => (
                    <ConfirmButton
                      label="Forget"
                      title="Forget this key?"
                      text="Your chats use the keys of the installation again, if there are any."
                      done="The key is forgotten."
                      onConfirm={() => forget(row.id)}
                    />
                  ),
                },
              ]}
            />
          </>
        );
      }}
    </Loaded>
  );
}

function NewKey({ providers }: { providers: readonly (readonly [string, string])[] }) {
  const [providerId, setProviderId] = useState(providers[0]?.[0] ?? "");
  const [key, setKey] = useState("");
  const saving = useSaving();

  async function add(): Promise<void> {
    await answered(api.POST("/api/v1/me/provider-keys", { body: { provider_id: providerId, key: key.trim() } }));
    setKey("");
    await refresh();
  }

  return (
    <div className="section-part">
      <Form
        saving={saving}
        label="Store the key"
        disabled={!key.trim()}
        onSubmit={() => void saving.save(add, "The key is stored.")}
      >
        <div className="form-row">
          <SelectField label="Provider" value={providerId} options={providers} onChange={setProviderId} />
          <TextField label="Key" type="password" value={key} onChange={setKey} problem={saving.of("/key")} />
        </div>
      </Form>
    </div>
  );
}
