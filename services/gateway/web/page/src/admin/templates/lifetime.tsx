/** How long new workspaces of a template live, and whether that can be changed. */
import { queryOptions, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { answered, api } from "../../api/client.ts";
import type { components } from "../../api/schema.d.ts";
import { CheckField, TextField } from "../../forms/fields.tsx";
import { Form, type Saving, useSaving } from "../../forms/form.tsx";
import { Loaded } from "../../forms/loaded.tsx";
import { Dialog } from "../../ui/dialog.tsx";

type Template = components["schemas"]["Template"];

const HOUR_MS = 3_600_000;

export interface LifetimeValues {
  hours: string;
  mostHours: string;
  isFixed: boolean;
}

export const NO_LIFETIME: LifetimeValues = { hours: "", mostHours: "", isFixed: false };

/** Return the fields of a body; what is left empty has no end. */
export function lifetimeBody({ hours, mostHours, isFixed }: LifetimeValues) {
  const ms = (text: string) => Math.round(Number(text || 0) * HOUR_MS);
  return { ttl_ms: ms(hours), ttl_max_ms: ms(mostHours), is_ttl_fixed: isFixed };
}

interface FieldsProps {
  values: LifetimeValues;
  saving: Saving;
  onChange: (values: LifetimeValues) => void;
}

export function LifetimeFields({ values, saving, onChange }: FieldsProps) {
  return (
    <>
      <div className="form-row">
        <TextField
          label="Lifetime in hours"
          type="number"
          value={values.hours}
          onChange={(hours) => onChange({ ...values, hours })}
          problem={saving.of("/ttl_ms")}
          hint="Until a workspace stops by itself; empty for no end."
        />
        <TextField
          label="At most, in hours"
          type="number"
          value={values.mostHours}
          onChange={(mostHours) => onChange({ ...values, mostHours })}
          problem={saving.of("/ttl_max_ms")}
          hint="What use can extend it to; empty for no bound."
        />
      </div>
      <CheckField
        label="Fixed"
        hint="Neither the lifetime of the installation nor a person's changes it."
        checked={values.isFixed}
        onChange={(isFixed) => onChange({ ...values, isFixed })}
      />
    </>
  );
}

interface DialogProps {
  templateId: string;
  onClose: () => void;
  onSaved: () => Promise<unknown>;
}

/** A template with its version, read anew whenever the dialog opens. */
function versioned(templateId: string) {
  return queryOptions({
    queryKey: ["admin", "template", templateId],
    gcTime: 0,
    queryFn: async ({ signal }) => {
      const params = { path: { template_id: templateId } };
      const call = api.GET("/api/v1/templates/{template_id}", { params, signal });
      const template = await answered(call);
      return { template, etag: (await call).response.headers.get("ETag") ?? "" };
    },
  });
}

export function LifetimeDialog({ templateId, onClose, onSaved }: DialogProps) {
  return (
    <Dialog title="Lifetime" onClose={onClose}>
      <Loaded query={useQuery(versioned(templateId))} what="template">
        {({ template, etag }) => <LifetimeForm template={template} etag={etag} onClose={onClose} onSaved={onSaved} />}
      </Loaded>
    </Dialog>
  );
}

function LifetimeForm({ template, etag, onClose, onSaved }: Omit<DialogProps, "templateId"> & { template: Template; etag: string }) {
  const hoursOf = (ms: number) => (ms ? String(ms / HOUR_MS) : "");
  const [values, setValues] = useState<LifetimeValues>({
    hours: hoursOf(template.ttl_ms),
    mostHours: hoursOf(template.ttl_max_ms),
    isFixed: template.is_ttl_fixed,
  });
  const saving = useSaving();

  async function save(): Promise<void> {
    const params = { path: { template_id: template.id }, header: { "If-Match": etag } };
    await answered(api.PATCH("/api/v1/templates/{template_id}", { params, body: lifetimeBody(values) }));
    await onSaved();
    onClose();
  }

  return (
    <Form saving={saving} onSubmit={() => void saving.save(save, "The lifetime is saved.")} onCancel={onClose}>
      <p>For new workspaces of {template.display_name || template.name}; those that exist stay as they are.</p>
      <LifetimeFields values={values} saving={saving} onChange={setValues} />
    </Form>
  );
}
