/** A server of tests: what it answers, by path. */
import { vi } from "vitest";

/** The body of an answer, an answer of another kind, one that does not come yet, or the reason why none comes. */
export type Answer = object | Response | Promise<Response> | Error;

/** An answer that does not come, such as that of a stream in which nothing happens. */
export const PENDING: Promise<Response> = new Promise(() => {});

const ABSENT = { type: "about:blank", title: "Not found", status: 404, detail: "It is not there.", instance: "", code: "NOT_FOUND", retryable: false };

/** Answer each request by its path, and what is not named with 404. */
export function serve(answers: Readonly<Record<string, Answer>> = {}, other: () => Answer = absent): void {
  vi.stubGlobal("fetch", async (request: Request): Promise<Response> => {
    const { pathname } = new URL(request.url);
    const answer = answers[pathname] ?? other();
    if (answer instanceof Error) throw answer;
    if (answer instanceof Promise) return answer;
    return answer instanceof Response ? answer.clone() : Response.json(answer);
  });
}

/** Let all requests wait for their answers. */
export function serveNothingYet(): void {
  vi.stubGlobal("fetch", () => PENDING);
}

export function absent(): Response {
  return Response.json(ABSENT, { status: 404 });
}

/** An error of the server that another attempt may not have. */
export function broken(detail = "The database does not answer."): Response {
  return Response.json({ ...ABSENT, title: "Internal error", status: 500, detail, code: "INTERNAL", retryable: true }, { status: 500 });
}
