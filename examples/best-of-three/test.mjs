import assert from 'node:assert/strict';
import { slug } from './slug.mjs';

assert.equal(slug('Hello World'), 'hello-world');
assert.equal(slug('Best of three'), 'best-of-three');
