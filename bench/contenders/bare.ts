// Node alone: the base cost of every figure of a fresh process.
process.stdout.write(`${JSON.stringify({ totalMs: performance.now() })}\n`);
