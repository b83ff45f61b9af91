/** What a query returned, or the state that it is in instead. */
import type { ReactNode } from "react";
import { Failure, Skeleton } from "../ui/states.tsx";

interface Query<T> {
  data: T | undefined;
  error: unknown;
  refetch: () => unknown;
}

interface LoadedProps<T> {
  query: Query<T>;
  what: string;
  children: (data: T) => ReactNode;
}

export function Loaded<T>({ query, what, children }: LoadedProps<T>) {
  if (query.data !== undefined) return children(query.data);
  if (query.error) return <Failure error={query.error} what={what} onRetry={() => void query.refetch()} />;
  return <Skeleton />;
}
