/** A gate that waits for an answer. */
export interface Question {
  readonly step: string;
  readonly message: string;
  readonly choices: readonly string[];
}
