/** When chats are archived and deleted by age, and what that would do now. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useDeferredValue, useState } from "react";
import { answered, api } from "../api/client.ts";
import { wordsOf } from "../api/problem.ts";
import { queryClient } from "../api/queries.ts";
import type { components } from "../api/schema.d.ts";
import { TextField } from "../forms/fields.tsx";
import { Form, useSaving } from "../forms/form.tsx";
import { Loaded } from "../forms/loaded.tsx";
import { Table } from "../forms/table.tsx";
import { installation, users } from "./queries.ts";

type Settings = components["schemas"]["InstallationSettings"];
type Step = components["schemas"]["RetentionStep"];

const STEPS: Record<Step, string> = {
  notice_archive: "Told that it will be archived",
  notice_purge: "Told that it will be deleted",
  withdraw: "Told that it stays",
  archive: "Archived",
  purge: "Deleted",
};

export default function RetentionSection() {
  return <Loaded query={useQuery(installation)} what="settings">{(data) => <Retention settings={data} />}</Loaded>;
}

function Retention({ settings }: { settings: Settings }) {
  const [archive, setArchive] = useState(String(settings.auto_archive_days));
  const [keep, setKeep] = useState(String(settings.retention_days));
  const [notice, setNotice] = useState(String(settings.retention_notice_days));
  const saving = useSaving();
  const body = { auto_archive_days: Number(archive), retention_days: Number(keep), retention_notice_days: Number(notice) };

  async function save(): Promise<void> {
    queryClient.setQueryData(installation.queryKey, await answered(api.PATCH("/api/v1/settings", { body })));
    await queryClient.invalidateQueries({ queryKey: ["admin", "retention"] });
  }

  return (
    <>
      <div className="section-part">
        <Form saving={saving} onSubmit={() => void saving.save(save, "Retention is saved.")}>
          <TextField
            label="Archive a chat after days without use"
            type="number"
            value={archive}
            onChange={setArchive}
            problem={saving.of("/auto_archive_days")}
            hint="0 never. Pinned and running chats are never archived."
          />
          <TextField label="Delete an archived chat after days" type="number" value={keep} onChange={setKeep} problem={saving.of("/retention_days")} hint="0 never." />
          <TextField
            label="Days between telling the owner and doing it"
            type="number"
            value={notice}
            onChange={setNotice}
            problem={saving.of("/retention_notice_days")}
          />
        </Form>
      </div>
      <DryRun days={body} />
    </>
  );
}

type Days = Pick<Settings, "auto_archive_days" | "retention_days" | "retention_notice_days">;

function DryRun({ days }: { days: Days }) {
  const asked = useDeferredValue(days);
  const isWhole = Object.values(asked).every((each) => Number.isInteger(each) && each >= 0);
  const query = useQuery({
    queryKey: ["admin", "retention", asked.auto_archive_days, asked.retention_days, asked.retention_notice_days],
    enabled: isWhole,
    placeholderData: keepPreviousData,
    queryFn: ({ signal }) => answered(api.GET("/api/v1/retention", { params: { query: asked }, signal })),
  });
  const names = new Map((useQuery(users).data?.items ?? []).map((each) => [each.id, each.display_name || each.login]));
  if (query.error) return <p className="field-problem" role="alert">{wordsOf(query.error)}</p>;
  if (!query.data) return null;
  const counted = query.data.counts.filter((each) => each.chats > 0);
  return (
    <>
      <h3 className="section-subtitle">What these values would do now</h3>
      <p role="status">
        {counted.length === 0
          ? "Nothing: no chat is old enough."
          : counted.map((each) => `${each.step ? STEPS[each.step] : ""}: ${each.chats}`).join(". ")}
      </p>
      {query.data.items.length > 0 && (
        <Table
          label="Chats that retention is about"
          rows={query.data.items}
          keyOf={(row) => `${row.chat_id} ${row.step}`}
          empty={{ title: "", text: "" }}
          columns={[
            { title: "Chat", cell: (row) => <code>{row.chat_id}</code> },
            { title: "Owner", cell: (row) => names.get(row.owner_id) ?? row.owner_id },
            { title: "What happens", cell: (row) => (row.step ? STEPS[row.step] : "") },
            { title: "When", cell: (row) => (row.at ? new Date(row.at).toLocaleString() : "") },
          ]}
        />
      )}
      <h3 className="section-subtitle">What happened</h3>
      <Table
        label="Days"
        rows={query.data.days}
        keyOf={(row) => row.day}
        empty={{ title: "Nothing yet", text: "Days on which chats were archived or deleted by age are listed here." }}
        columns={[
          { title: "Day", cell: (row) => row.day },
          { title: "Told", isNumber: true, cell: (row) => row.noticed },
          { title: "Withdrawn", isNumber: true, cell: (row) => row.withdrawn },
          { title: "Archived", isNumber: true, cell: (row) => row.archived },
          { title: "Deleted", isNumber: true, cell: (row) => row.purged },
        ]}
      />
    </>
  );
}
