export { type AgentMessage, Conversation, checkPrompt, SessionCount } from './conversation.ts';
export { watchEscapes } from './escapes.ts';
export type { SessionEnd } from './session.ts';
export { slotsOf } from './slots.ts';
