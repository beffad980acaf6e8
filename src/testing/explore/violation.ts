/** Something that must never be. */
export interface Violation {
  /** A few words that stay the same from schedule to schedule: two failures with the same words are the same failure. */
  readonly what: string;
  /** One sentence for people. */
  readonly message: string;
}
