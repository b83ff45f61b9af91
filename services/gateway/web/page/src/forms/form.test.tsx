// @vitest-environment happy-dom
import { act } from "react";
import { expect, test } from "vitest";
import { Problem, type ProblemDocument } from "../api/problem.ts";
import { newCanvas } from "../testing/canvas.tsx";
import { TextField } from "./fields.tsx";
import { Form, type Saving, useSaving } from "./form.tsx";

const canvas = newCanvas();

function Example({ refusal }: { refusal: Problem }) {
  const saving = useSaving();
  return (
    <Form saving={saving} onSubmit={() => void saving.save(() => Promise.reject(refusal))}>
      <TextField label="Time" value="61" onChange={() => {}} problem={saving.of("/cron")} />
      <Hosts saving={saving} />
    </Form>
  );
}

/** A part of a form that is a component of its own. */
function Hosts({ saving }: { saving: Saving }) {
  return <TextField label="Hosts" value="-" onChange={() => {}} problem={saving.of("/hosts")} />;
}

/** Return all that is said of a refusal. */
async function said(detail: string, errors: { pointer: string; detail: string }[]): Promise<(string | null)[]> {
  const document = { title: "Invalid", status: 422, detail, code: "INVALID_REQUEST", errors: errors.map((each) => ({ code: "INVALID", ...each })) };
  await canvas.show(<Example key={detail} refusal={new Problem(document as unknown as ProblemDocument)} />);
  await act(async () => canvas.element.querySelector<HTMLElement>("[type=submit]")!.click());
  return [...canvas.element.querySelectorAll("[role=alert]")].map((each) => each.textContent);
}

const MINUTE = { pointer: "/cron", detail: "Minute: 61 is not within 0-59." };
const HOST = { pointer: "/hosts/0", detail: "It is no host." };
const ZONE = { pointer: "/time_zone", detail: "It is not known." };

test("what a field says is not said again by the form, which says the rest", async () => {
  expect(await said("/cron: Minute: 61 is not within 0-59.", [MINUTE])).toEqual([MINUTE.detail]);
  expect(await said("/cron: 61; /hosts/0: no host", [MINUTE, HOST])).toEqual([MINUTE.detail, HOST.detail]);
  expect(await said("/cron: 61; /time_zone: not known", [MINUTE, ZONE])).toEqual([MINUTE.detail, "/time_zone: It is not known."]);
  expect(await said("The name is taken.", [])).toEqual(["The name is taken."]);
});
