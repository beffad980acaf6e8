// @ts-check
import { explore } from 'reprise/testing';

/** Two people buy the last seat: each checks that a seat is free and then books it. */
const apart = await explore(({ effect, lane }) => {
  let seats = 1;
  const look = effect({ name: 'look', reads: ['seats'], perform: () => seats });
  const book = effect({ name: 'book', writes: ['seats'], perform: () => seats-- });
  const buy = async () => ((await look()) > 0 ? book() : undefined);
  lane('ann', buy);
  lane('bob', buy);
  return () => {
    if (seats < 0) throw new Error(`${1 - seats} tickets for 1 seat`);
  };
});
console.log(`${apart}\n`);

/** The same purchase, with checking and booking as a single effect. */
const together = await explore(({ effect, lane }) => {
  let seats = 1;
  const buy = effect({ name: 'buy', writes: ['seats'], perform: () => (seats > 0 ? seats-- : 0) });
  lane('ann', () => buy());
  lane('bob', () => buy());
  return () => {
    if (seats < 0) throw new Error(`${1 - seats} tickets for 1 seat`);
  };
});
console.log(String(together));
