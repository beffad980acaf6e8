/** Who commits what a step left uncommitted. */
export const committer = { name: 'Reprise', email: 'reprise@localhost' } as const;
