/** Calls back when everything that can happen at once has happened: what is written then is written once. */
export const atEndOfTurn = (callback: () => void): void => void setImmediate(callback);
