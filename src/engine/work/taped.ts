import type { Lease } from '../../store/port.ts';

/** Who owns a run is on the tape once, where the run was taken. */
export const withoutLease = <T extends { readonly lease: Lease }>({ lease, ...rest }: T): Omit<T, 'lease'> =>
  rest;

/** The number of the lock counts what has landed in a repository before, in other runs too. */
export const withoutToken = ({ token: _, ...rest }: { readonly token: number }): unknown => rest;
