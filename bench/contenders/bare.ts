/** Node alone: the base cost of every figure of a fresh process. */
export const methods = { alone: () => ({ totalMs: performance.now() }) };

process.stdout.write(`${JSON.stringify(methods.alone())}\n`);
