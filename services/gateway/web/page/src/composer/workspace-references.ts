/** Prompts and resources of the trusted servers in the workspace of a chat, read when somebody begins to type one. */
import { queryOptions, useQueries, useQuery } from "@tanstack/react-query";
import { answered, api } from "../api/client.ts";
import { MENTION, type Prompt, type Resource } from "./mentions.ts";
import { argumentNames, asFile, type Content, READ_AGAIN_MS } from "./server-references.ts";

const USABLE: readonly string[] = ["trusted", "running"];

export function useWorkspaceReferences(chatId: string | null, text: string): { prompts: Prompt[]; resources: Resource[] } {
  const isPrompt = text.startsWith("/");
  const isMention = MENTION.test(text);
  const found = useQuery({ ...trustedOf(chatId ?? ""), enabled: chatId !== null && (isPrompt || isMention) });
  const names = chatId === null ? [] : (found.data ?? []);
  const prompts = useQueries({ queries: names.map((name) => ({ ...promptsOf(chatId ?? "", name), enabled: isPrompt })) });
  const resources = useQueries({ queries: names.map((name) => ({ ...resourcesOf(chatId ?? "", name), enabled: isMention })) });
  // A server that does not answer offers nothing here.
  return { prompts: prompts.flatMap((each) => each.data ?? []), resources: resources.flatMap((each) => each.data ?? []) };
}

function trustedOf(chatId: string) {
  return queryOptions({
    queryKey: ["chat", chatId, "servers", "trusted"],
    staleTime: READ_AGAIN_MS,
    retry: false,
    queryFn: async ({ signal }): Promise<string[]> => {
      const path = { chat_id: chatId };
      const { servers } = await answered(api.GET("/api/v1/chats/{chat_id}/servers", { params: { path }, signal }));
      return servers.filter((each) => USABLE.includes(each.state ?? "")).map((each) => each.name);
    },
  });
}

function promptsOf(chatId: string, name: string) {
  return queryOptions({
    queryKey: ["chat", chatId, "servers", name, "prompts"],
    staleTime: READ_AGAIN_MS,
    retry: false,
    queryFn: async ({ signal }): Promise<Prompt[]> => {
      const path = { chat_id: chatId, name };
      const { items } = await answered(api.GET("/api/v1/chats/{chat_id}/servers/{name}/prompts", { params: { path }, signal }));
      return items.map((each) => ({
        name: `ws_${name}:${each.name}`,
        hint: each.description || each.title,
        arguments: argumentNames(each.arguments),
        fill: async (given) => {
          const body = { prompt: each.name, arguments: given };
          const filled = await answered(api.POST("/api/v1/chats/{chat_id}/servers/{name}/prompts/get", { params: { path }, body }));
          return filled.text;
        },
      }));
    },
  });
}

function resourcesOf(chatId: string, name: string) {
  return queryOptions({
    queryKey: ["chat", chatId, "servers", name, "resources"],
    staleTime: READ_AGAIN_MS,
    retry: false,
    queryFn: async ({ signal }): Promise<Resource[]> => {
      const path = { chat_id: chatId, name };
      const { items } = await answered(api.GET("/api/v1/chats/{chat_id}/servers/{name}/resources", { params: { path }, signal }));
      return items.map((each) => ({
        name: each.title || each.name || each.uri,
        hint: `ws_${name} ${each.uri}`,
        read: async () => {
          const body = { uri: each.uri };
          const read = await answered(api.POST("/api/v1/chats/{chat_id}/servers/{name}/resources/read", { params: { path }, body }));
          return asFile(each.uri, read.content as Content[]);
        },
      }));
    },
  });
}
