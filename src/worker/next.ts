/** What an agent wants to happen after it. */
export type Next =
  /** Another agent goes on. */
  | { readonly kind: 'agent'; readonly agent: string; readonly args: Readonly<Record<string, string>> }
  /** The work is done. */
  | { readonly kind: 'land' }
  /** It cannot be done. */
  | { readonly kind: 'give-up'; readonly reason: string }
  /** Of a dispatcher: there is nothing to do now. */
  | { readonly kind: 'sleep' };

export type ParsedNext =
  | { readonly kind: 'next'; readonly next: Next }
  /** What is wrong, in a sentence that its author can mend it by. */
  | { readonly kind: 'problem'; readonly message: string };
