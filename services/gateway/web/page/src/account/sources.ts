/** Where exports are begun and read: one's own, and those of a user who is locked out. */
import { answered, api } from "../api/client.ts";
import type { AccountExport } from "../api/types.ts";

export interface ExportSource {
  /** Under which its list is kept. */
  key: readonly string[];
  list: (signal: AbortSignal) => Promise<{ items: readonly AccountExport[] }>;
  begin: () => Promise<unknown>;
  /** The address of an archive. */
  archive: (exportId: string) => string;
}

export const ownExports: ExportSource = {
  key: ["me", "exports"],
  list: (signal) => answered(api.GET("/api/v1/me/exports", { signal })),
  begin: () => answered(api.POST("/api/v1/me/exports")),
  archive: (exportId) => `/api/v1/me/exports/${exportId}/archive`,
};

export function exportsOf(userId: string): ExportSource {
  const params = { path: { user_id: userId } };
  return {
    key: ["users", userId, "exports"],
    list: (signal) => answered(api.GET("/api/v1/users/{user_id}/exports", { params, signal })),
    begin: () => answered(api.POST("/api/v1/users/{user_id}/exports", { params })),
    archive: (exportId) => `/api/v1/users/${userId}/exports/${exportId}/archive`,
  };
}
