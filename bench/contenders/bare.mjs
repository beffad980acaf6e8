// Node alone: what every figure of a fresh process begins with.
process.stdout.write(`${JSON.stringify({ totalMs: performance.now() })}\n`);
