/** Starting a race with what was written in the composer. */
import { answered, api } from "../api/client.ts";
import { Problem } from "../api/problem.ts";
import { queryClient } from "../api/queries.ts";
import type { components } from "../api/schema.d.ts";
import type { InputPart, Model } from "../api/types.ts";
import type { RaceOptions } from "./options.tsx";
import { MODELS_MAX, MODELS_MIN, nameFor } from "./race.ts";
import { race, races } from "./queries.ts";

type Body = components["schemas"]["CreateRaceBody"];

/** Make an error of the kind that the server answers, for what it need not be asked. */
function refusal(pointer: string, detail: string): Problem {
  return new Problem({
    type: "about:blank",
    title: "Invalid",
    status: 422,
    detail,
    instance: "",
    code: "INVALID_REQUEST",
    retryable: false,
    errors: [{ pointer, code: "INVALID", detail }],
  });
}

/** Return the request of a race; throw a problem with the field that is not as it must be. */
export function raceBody(content: readonly InputPart[], options: RaceOptions, known: readonly Model[]): Body {
  const count = options.modelIds.length;
  if (count < MODELS_MIN || count > MODELS_MAX) {
    throw refusal("/models", `Choose ${MODELS_MIN} to ${MODELS_MAX} models; ${count} ${count === 1 ? "is" : "are"} chosen.`);
  }
  const texts = content.flatMap((part) => (part.type === "text" ? [part.text] : []));
  if (texts.length < content.length) throw refusal("/prompt", "A race takes a text. Remove the files, or put them into a workspace.");
  return {
    prompt: texts.join("\n\n"),
    models: options.modelIds.map((each) => nameFor(each, known)),
    ...(options.check.trim() ? { check_command: options.check.trim() } : {}),
  };
}

/** Start a race and return its id; a second attempt with the same key continues the first one. */
export async function startRace(body: Body, workspaceId: string | null, key: string): Promise<string> {
  const params = { header: { "Idempotency-Key": key } };
  const made = await answered(
    api.POST("/api/v1/races", { params, body: { ...body, ...(workspaceId ? { workspace_id: workspaceId } : {}) } }),
  );
  queryClient.setQueryData(race(made.id).queryKey, made);
  void queryClient.invalidateQueries({ queryKey: races.queryKey });
  return made.id;
}
