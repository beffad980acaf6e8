/** Where a reporter writes, and what the place can show. */
export interface TestReporterOptions {
  readonly write: (text: string) => void;
  readonly color: boolean;
  readonly columns: number;
  /** Whether more than ASCII can be shown; it can unless it is said. */
  readonly unicode?: boolean | undefined;
  /** From the root of the repository to where the tests were started, such as `packages/a/`. For annotations only. */
  readonly pathPrefix?: string | undefined;
}
