/** Prompts and resources of the MCP servers of a chat, read when somebody begins to type one. */
import { queryOptions, useQueries, useQuery } from "@tanstack/react-query";
import { answered, api } from "../api/client.ts";
import { isUsed, type Selection, type Server, stateOf } from "../mcp/selection.ts";
import { servers } from "../mcp/servers.ts";
import { fileName, MENTION, type Prompt, type Resource } from "./mentions.ts";

export const READ_AGAIN_MS = 60_000;

export interface Content {
  type: string;
  text?: string;
  data?: string;
  media_type?: string;
}

export function useServerReferences(selection: Selection, text: string): { prompts: Prompt[]; resources: Resource[] } {
  const all = useQuery(servers).data?.items ?? [];
  const used = all.filter((each) => isUsed(each, selection) && stateOf(each).action === null);
  const prompts = useQueries({ queries: used.map((each) => ({ ...promptsOf(each), enabled: text.startsWith("/") })) });
  const resources = useQueries({ queries: used.map((each) => ({ ...resourcesOf(each), enabled: MENTION.test(text) })) });
  // A server that does not answer offers nothing here.
  return { prompts: prompts.flatMap((each) => each.data ?? []), resources: resources.flatMap((each) => each.data ?? []) };
}

function promptsOf(server: Server) {
  return queryOptions({
    queryKey: ["mcp", "prompts", server.id],
    staleTime: READ_AGAIN_MS,
    retry: false,
    queryFn: async ({ signal }): Promise<Prompt[]> => {
      const path = { server_id: server.id };
      const { items } = await answered(api.GET("/api/v1/mcp/servers/{server_id}/prompts", { params: { path }, signal }));
      return items.map((each) => ({
        name: `${server.slug}:${each.name}`,
        hint: each.description || each.title,
        arguments: argumentNames(each.arguments),
        fill: async (given) => {
          const body = { name: each.name, arguments: given };
          const filled = await answered(api.POST("/api/v1/mcp/servers/{server_id}/prompts/get", { params: { path }, body }));
          return filled.text;
        },
      }));
    },
  });
}

function resourcesOf(server: Server) {
  return queryOptions({
    queryKey: ["mcp", "resources", server.id],
    staleTime: READ_AGAIN_MS,
    retry: false,
    queryFn: async ({ signal }): Promise<Resource[]> => {
      const path = { server_id: server.id };
      const { items } = await answered(api.GET("/api/v1/mcp/servers/{server_id}/resources", { params: { path }, signal }));
      return items
        .filter((each) => !each.is_template)
        .map((each) => ({
          name: each.title || each.name || each.uri,
          hint: `${server.slug} ${each.uri}`,
          read: async () => {
            const body = { uri: each.uri };
            const read = await answered(api.POST("/api/v1/mcp/servers/{server_id}/resources/read", { params: { path }, body }));
            return asFile(each.uri, read.content as Content[]);
          },
        }));
    },
  });
}

/** The names of a prompt's arguments, those that have to be given first. */
export function argumentNames(given: readonly { name: string; is_required: boolean }[]): string[] {
  return given.toSorted((a, b) => Number(b.is_required) - Number(a.is_required)).map((each) => each.name);
}

/** The contents of a resource as one file; several texts follow each other. */
export function asFile(uri: string, contents: readonly Content[]): File {
  const data = contents.find((each) => each.data !== undefined);
  const texts = contents.filter((each) => each.text !== undefined);
  if (texts.length === 0 && data) {
    const bytes = Uint8Array.from(atob(data.data!), (character) => character.charCodeAt(0));
    return new File([bytes], fileName(uri), { type: data.media_type || "application/octet-stream" });
  }
  const text = texts.map((each) => each.text).join("\n\n");
  return new File([text], fileName(uri), { type: texts[0]?.media_type || "text/plain" });
}
