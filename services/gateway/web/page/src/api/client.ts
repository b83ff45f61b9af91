/** The API, typed by its OpenAPI document. Every function throws a `Problem` or `Unreachable`. */
import createClient from "openapi-fetch";
import { Problem, type ProblemDocument } from "./problem.ts";
import type { paths } from "./schema.d.ts";
import { send } from "./transport.ts";

export const api = createClient<paths>({ baseUrl: location.origin, fetch: send });

interface Outcome<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** Return what a call answered, or throw its problem. */
export async function answered<T>(call: Promise<Outcome<T>>): Promise<NonNullable<T>> {
  const { data, error, response } = await call;
  if (response.ok) return (data ?? {}) as NonNullable<T>;
  const document = error as Partial<ProblemDocument> | undefined;
  throw new Problem({
    type: "about:blank",
    title: response.statusText || "The request failed",
    detail: `The server answered ${response.status}.`,
    instance: "",
    code: "INTERNAL",
    retryable: response.status >= 500,
    ...(document && typeof document === "object" ? document : {}),
    status: response.status,
  });
}

/** Return the header with which a change is refused if the resource is no longer as it was read. */
export function unchangedSince({ etag }: { etag: string | null }): { "If-Match"?: string } {
  return etag ? { "If-Match": `"${etag}"` } : {};
}
