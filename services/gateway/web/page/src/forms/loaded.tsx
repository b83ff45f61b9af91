/** What a query returned, or the state that it is in instead. */
import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Failure, Skeleton } from "../ui/states.tsx";

interface LoadedProps<T> {
  query: UseQueryResult<T>;
  what: string;
  children: (data: T) => ReactNode;
}

export function Loaded<T>({ query, what, children }: LoadedProps<T>) {
  if (query.data !== undefined) return children(query.data);
  if (query.error) return <Failure error={query.error} what={what} onRetry={() => void query.refetch()} />;
  return <Skeleton />;
}
