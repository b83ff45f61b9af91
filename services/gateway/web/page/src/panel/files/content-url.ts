/** Where the content of a file of a workspace is read and written. */
export function contentUrl(chatId: string, path: string): string {
  return `/api/v1/chats/${chatId}/files/content?path=${encodeURIComponent(path)}`;
}
