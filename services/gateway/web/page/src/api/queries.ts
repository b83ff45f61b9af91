/** What is read of the server, by key; screens share these. */
import { QueryClient, infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { answered, api } from "./client.ts";
import { Problem } from "./problem.ts";

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 30_000,
      // The transport repeats by itself what may be repeated.
      retry: (failures, error) => !(error instanceof Problem) && failures < 2,
      refetchOnWindowFocus: true,
    },
    mutations: { retry: false },
  },
});

export const me = queryOptions({
  queryKey: ["me"],
  queryFn: ({ signal }) => answered(api.GET("/api/v1/me", { signal })),
  staleTime: Number.POSITIVE_INFINITY,
});

export const models = queryOptions({
  queryKey: ["models"],
  queryFn: ({ signal }) =>
    answered(api.GET("/api/v1/models", { params: { query: { limit: 200 } }, signal })),
  staleTime: 300_000,
});

export const actions = queryOptions({
  queryKey: ["actions"],
  queryFn: ({ signal }) => answered(api.GET("/api/v1/actions", { signal })),
});

/** Calls that may have run; they change with the turns of chats only. */
export const unknownOutcomes = queryOptions({
  queryKey: ["unknown-outcomes"],
  queryFn: ({ signal }) => answered(api.GET("/api/v1/unknown-outcomes", { signal })),
});

export function chat(chatId: string) {
  return queryOptions({
    queryKey: ["chat", chatId],
    queryFn: ({ signal }) =>
      answered(api.GET("/api/v1/chats/{chat_id}", { params: { path: { chat_id: chatId } }, signal })),
  });
}

/** All chats below a root, which the feed keeps current. */
export function below(rootId: string) {
  return queryOptions({
    queryKey: ["below", rootId],
    queryFn: async ({ signal }) => {
      const read = (children_after?: string) =>
        answered(api.GET("/api/v1/chats/{chat_id}", { params: { path: { chat_id: rootId }, query: { ...(children_after && { children_after }) } }, signal }));
      let root = await read();
      const children = [...root.children];
      while (root.has_more_children && children.length) {
        root = await read(children.at(-1)!.id);
        children.push(...root.children);
      }
      return children;
    },
  });
}

export function todos(chatId: string) {
  return queryOptions({
    queryKey: ["todos", chatId],
    queryFn: ({ signal }) =>
      answered(api.GET("/api/v1/chats/{chat_id}/todos", { params: { path: { chat_id: chatId } }, signal })),
  });
}

/** What a chat used, which its owner may know. */
export function chatUsage(chatId: string) {
  return queryOptions({
    queryKey: ["chat-usage", chatId],
    queryFn: ({ signal }) =>
      answered(
        api.GET("/api/v1/chats/{chat_id}/usage", { params: { path: { chat_id: chatId } }, signal }),
      ),
  });
}

/** The names of users, by id. */
export function people(ids: readonly string[]) {
  const id = [...new Set(ids)].toSorted();
  return queryOptions({
    queryKey: ["people", id],
    enabled: id.length > 0,
    queryFn: ({ signal }) => answered(api.GET("/api/v1/people", { params: { query: { id } }, signal })),
  });
}

export interface ChatFilter {
  archived: boolean;
  shared: boolean;
  q: string;
}

export function chats(filter: ChatFilter) {
  return infiniteQueryOptions({
    queryKey: ["chats", filter],
    queryFn: ({ pageParam, signal }) =>
      answered(
        api.GET("/api/v1/chats", {
          params: {
            query: {
              limit: 50,
              ...(pageParam ? { cursor: pageParam } : {}),
              ...(filter.archived ? { archived: true } : {}),
              ...(filter.shared ? { shared_with_me: true } : {}),
              ...(filter.q ? { q: filter.q } : {}),
            },
          },
          signal,
        }),
      ),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_cursor || undefined,
  });
}
