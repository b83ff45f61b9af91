/** Names for the schemas of the OpenAPI document. */
import type { components } from "./schema.d.ts";

type Schemas = components["schemas"];

export type AccountExport = Schemas["AccountExport"];
export type Action = Schemas["Action"];
export type Chat = Schemas["Chat"];
export type ChatError = Schemas["ChatError"];
export type ChatEvent = Schemas["ChatEvent"];
export type ChatStatus = Schemas["ChatStatus"];
export type CreateChatBody = Schemas["CreateChatBody"];
export type FeedEvent = Schemas["FeedEvent"];
export type ListChatsResponse = Schemas["ListChatsResponse"];
export type ListMessagesResponse = Schemas["ListMessagesResponse"];
export type Me = Schemas["Me"];
export type Message = Schemas["Message"];
export type MessagePartEvent = Schemas["MessagePartEvent"];
export type Model = Schemas["Model"];
export type Part = Schemas["Part"];
export type QueuedMessage = Schemas["QueuedMessage"];
export type ReasoningEffort = Schemas["ReasoningEffort"];
export type RequiredAction = Schemas["RequiredAction"];
export type RetryState = Schemas["RetryState"];
export type Schedule = Schemas["Schedule"];
export type StoredFile = Schemas["File"];
export type ToolCallPart = Schemas["ToolCallPart"];
export type ToolResultPart = Schemas["ToolResultPart"];
export type UnknownOutcome = Schemas["UnknownOutcome"];
export type Usage = Schemas["Usage"];

/** The parts that a client may send. */
export type InputPart = CreateChatBody["content"][number];
