import { RepriseError } from '../core/errors.ts';

/** For lanes that only wait: to be cancelled is their natural end. */
export async function untilCancelled(body: () => Promise<void>): Promise<void> {
  try {
    await body();
  } catch (thrown) {
    if (!(thrown instanceof RepriseError) || thrown.code !== 'CANCELLED') throw thrown;
  }
}
