/** Errors of turns in words, with what to do. */
import type { ChatError } from "../api/types.ts";

const TITLES: Record<string, [title: string, remedy: string]> = {
  overloaded: ["The provider is overloaded", "Send the message again in a while, or choose another model."],
  rate_limit: ["Too many requests to the provider", "Wait a moment, or choose another model."],
  timeout: ["The provider took too long", "Send the message again."],
  startup_timeout: ["The provider did not begin to answer", "Send the message again, or choose another model."],
  stream_silence_timeout: ["The answer stalled", "Send the message again."],
  auth: ["The provider refused the key", "Check the provider's key in the settings."],
  config: ["The model is not set up correctly", "An administrator can correct it."],
  usage_limit: ["A spend limit is reached", "It is lifted when its period ends, or by an administrator."],
  missing_key: ["There is no key for this provider", "Add one in the settings, or choose another model."],
  provider_disabled: ["The provider is switched off", "Choose another model."],
  content_filter: ["The provider blocked the answer", "Say it in other words."],
  context_overflow: ["The chat is too long for the model", "Choose a model with a larger window, or begin a new chat."],
  crash_loop: ["The turn failed several times", "Edit the last message and try again."],
  hook_dispatch_failed: ["A lifecycle hook failed", "An administrator finds the cause in the log."],
  hook_denied: ["A policy refused this", "Ask an administrator what is allowed."],
  model_unavailable: ["The model is no longer there", "Choose another model."],
};

export function errorWords(error: ChatError): { title: string; remedy: string } {
  const [title, remedy] = TITLES[error.kind ?? ""] ?? ["The turn failed", error.retryable ? "Send the message again." : ""];
  return { title, remedy };
}
