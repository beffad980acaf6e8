import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Tail } from './output.ts';

test('keeps the end of the pushed bytes, however they are split into chunks', () => {
  const chunks = fc.array(fc.string({ maxLength: 12 }).map(text => text.replace(/[^ -~]/g, '.')));
  fc.assert(
    fc.property(chunks, fc.nat(10), (texts, size) => {
      const tail = new Tail(size);
      for (const text of texts) tail.push(Buffer.from(text));
      expect(tail.text()).toBe(size === 0 ? '' : texts.join('').slice(-size));
    }),
  );
});

test.each([4, 5, 6, 7, 8])('omits a character that was cut when %i bytes are kept', size => {
  const tail = new Tail(size);
  tail.push(Buffer.from('a😀😀'));
  expect(tail.text()).toBe(size < 8 ? '😀' : '😀😀');
});
