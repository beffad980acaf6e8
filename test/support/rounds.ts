/** `REPRISE_TEST_ROUNDS=0.1` runs a tenth of the rounds of the long suites, `10` ten times as many. */
export const roundsFactor = Number(process.env['REPRISE_TEST_ROUNDS'] ?? 1);

/** Number of rounds of a long test, scaled from its usual number. */
export const rounds = (usual: number): number => Math.max(2, Math.ceil(usual * roundsFactor));
