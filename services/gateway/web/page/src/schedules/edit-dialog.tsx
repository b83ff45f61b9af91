/** Changing a schedule: the version that was read when the form was opened, so that a later one is not overwritten unseen. */
import { useQuery } from "@tanstack/react-query";
import { answered, api } from "../api/client.ts";
import type { Schedule } from "../api/types.ts";
import { useSaving } from "../forms/form.tsx";
import { Loaded } from "../forms/loaded.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { refresh, scheduleVersion } from "./queries.ts";
import { ownZone, ScheduleForm } from "./schedule-form.tsx";
import { changesOf, type ScheduleValues, valuesOf } from "./schedule-values.ts";

export function EditDialog({ scheduleId, onClose }: { scheduleId: string; onClose: () => void }) {
  const query = useQuery(scheduleVersion(scheduleId));
  const saving = useSaving();

  async function save(schedule: Schedule, etag: string, values: ScheduleValues): Promise<void> {
    const params = { path: { schedule_id: scheduleId }, header: { "If-Match": etag } };
    const body = changesOf(valuesOf(schedule, ownZone()), values);
    if (Object.keys(body).length > 0) await answered(api.PATCH("/api/v1/schedules/{schedule_id}", { params, body }));
    await refresh();
    onClose();
  }

  return (
    <Dialog title="Change the schedule" wide onClose={onClose}>
      <Loaded query={query} what="schedule">
        {({ schedule, etag }) => (
          <ScheduleForm
            schedule={schedule}
            saving={saving}
            label="Save"
            onSubmit={(values) => void saving.save(() => save(schedule, etag, values), "The schedule is changed.")}
            onCancel={onClose}
          />
        )}
      </Loaded>
    </Dialog>
  );
}
